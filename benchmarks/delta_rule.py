"""The gated delta rule as our graphs have it, against the runtime's operation for it, in turns.

One layer of Qwen3.5-4B's sizes, in float32, with random rows. Printed are medians in milliseconds.

usage: uv run python -m benchmarks.delta_rule [--rounds N]
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.compilation import compile_properties
from ouzel.backends.openvino.graph.delta_rule import DeltaHeads, delta_rule, halves
from ouzel.backends.openvino.graph.nodes import Node
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.graph.states import operation, state_table
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.chunked_rows import chunk_inputs
from ouzel.config import EngineConfig

HEADS = DeltaHeads(num_key_heads=16, num_value_heads=32, key_dim=128, value_dim=128)
TABLE = "state.delta.0"
BATCHES = (
    (1, 1),
    (8, 1),
    (32, 1),
    (1, 64),
    (1, 480),
    (1, 1024),
    (16, 32),
)  # sequences, tokens of each


def ours(graph: PagedGraph, mixed: Node, rates: Node) -> Node:
    return delta_rule(graph, mixed, rates, 0, HEADS)


def theirs(graph: PagedGraph, mixed: Node, rates: Node) -> Node:
    log_decay, beta = halves(rates, HEADS)
    inputs = [
        *HEADS.split(mixed),
        state_table(graph, "delta", 0, *HEADS.state_shape),
        log_decay,
        beta,
    ]
    return operation("PagedGatedDeltaNet", [*inputs, *graph.state_paging], qk_l2norm=True)


class Layer:
    def __init__(self, rule: Callable[[PagedGraph, Node, Node], Node]) -> None:
        graph = PagedGraph()
        mixed = graph.input("mixed", [-1, HEADS.size], ov.Type.f32)
        rates = graph.input("rates", [-1, 2 * HEADS.num_value_heads], ov.Type.f32)
        self.model = LanguageModel(
            graph=graph.finish(rule(graph, mixed, rates)),
            arrays=graph.arrays,
            ropes={},
            hidden_size=HEADS.value_size,
            vocab_size=1,
            max_positions=1,
        )
        properties = compile_properties(EngineConfig(precision="f32"), self.model)
        self._request = (
            ov.Core().compile_model(self.model.graph, "CPU", properties).create_infer_request()
        )

    def take(self, inputs: dict[str, NDArray[np.generic]]) -> None:
        self._inputs = inputs  # which the request points to
        for port in self._request.model_inputs:
            name = port.get_any_name()
            if name == TABLE:
                own = inputs[name].reshape(
                    -1, *(each.get_length() for each in list(port.get_partial_shape())[1:])
                )
                self._request.set_tensor(name, ov.Tensor(own, shared_memory=True))
            elif name in inputs:
                self._request.set_tensor(name, ov.Tensor(inputs[name], shared_memory=True))

    def run(self) -> float:
        started = time.perf_counter()
        self._request.infer()
        return 1000 * (time.perf_counter() - started)


def inputs_of(num_sequences: int, num_tokens: int) -> dict[str, NDArray[np.generic]]:
    rng, num_rows = np.random.default_rng(0), num_sequences * num_tokens
    begins = np.arange(0, num_rows + 1, num_tokens, dtype=np.int32)
    slots = np.array([(0, 1 + each) for each in range(num_sequences)], np.int32)
    decays = -0.1 * rng.random((num_rows, HEADS.num_value_heads))
    betas = rng.random((num_rows, HEADS.num_value_heads))
    return {
        "mixed": rng.standard_normal((num_rows, HEADS.size), np.float32),
        "rates": np.concatenate([decays, betas], 1).astype(np.float32),
        TABLE: np.zeros((1 + num_sequences, *HEADS.state_shape), np.float32),
        "past_lens": np.zeros(num_sequences, np.int32),
        "subsequence_begins": begins,
        "state_slots": slots.reshape(-1),
        "state_slots_begins": np.arange(0, 2 * num_sequences + 1, 2, dtype=np.int32),
        "state_interval": np.full(num_sequences, 2**30, np.int32),
        **chunk_inputs(begins, slots[:, 0]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the gated delta rule.")
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    layers = (Layer(ours), Layer(theirs))
    print(
        "| sequences | tokens of each | ours | PagedGatedDeltaNet | ratio |\n|---:|---:|---:|---:|---:|"
    )
    for batch in BATCHES:
        for layer in layers:
            layer.take(inputs_of(*batch))
            layer.run()
        times = [[layer.run() for layer in layers] for _ in range(rounds)]
        own, other = (median(each) for each in zip(*times, strict=True))
        print(
            f"| {batch[0]} | {batch[1]} | {own:.1f} | {other:.1f} | {other / own:.1f} |", flush=True
        )


if __name__ == "__main__":
    main()
