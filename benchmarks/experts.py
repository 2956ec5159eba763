"""The two forms of a mixture of experts, measured in turns: slices of the sorted rows, and one grouped product.

Random weights and tokens; every expert has the same weights, and every step other tokens, so that each finds other
counts of rows. Times are of the processor, on one thread, so that what else runs on the machine counts little: of a
step of all layers, and of the slices relative to the grouped product of the same round.

usage: uv run python -m benchmarks.experts [--shapes EXPERTS/CHOSEN/HIDDEN/INNER ...] [--layers N] [--rounds N]
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.compilation import NUM_KEPT_PRIMITIVES
from ouzel.backends.openvino.graph import experts
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.routing import Routing
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.weights.encodings import encoder, encoding_of
from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec
from ouzel.config.weights import WidthOption, read_weights

SHAPES = ["32/4/1024/512", "64/8/1024/512", "128/8/1024/384"]
NUM_TOKENS = (1, 8, 32, 256)
FORMS = {"grouped": 0, "sliced": 2**31}  # experts that are sliced at most
PROPERTIES = {
    "INFERENCE_NUM_THREADS": 1,
    "PERFORMANCE_HINT": "LATENCY",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": 64,
    "CPU_RUNTIME_CACHE_CAPACITY": NUM_KEPT_PRIMITIVES,
}


class RandomWeights:
    """Implements `Weights`."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)

    def matrix(self, wanted: MatrixSpec, width: WidthOption) -> Matrix:
        assert width != "auto"
        *outer, num_rows, columns = wanted.shape
        rows = self._rng.standard_normal((num_rows, columns), np.float32) / np.float32(columns**0.5)
        encoding = encoding_of(width, columns)
        one = encoder(encoding)(rows)
        parts = {name: np.tile(part, (int(np.prod(outer)), 1)) for name, part in one.items()}
        return Matrix(encoding, wanted.shape, parts)

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        raise AssertionError(f"{name} is no matrix")

    def has(self, name: str) -> bool:
        return True


@dataclass
class Compiled:
    """It keeps the arrays that the compiled model points into."""

    request: ov.InferRequest
    builder: Builder
    compile_s: float


def compile_form(form: str, shape: list[int], width: str, num_layers: int) -> Compiled:
    experts.MAX_SLICED_EXPERTS = FORMS[form]
    num_experts, num_chosen, hidden, inner = shape
    routing = Routing(num_experts=num_experts, num_chosen=num_chosen, is_normalised=True)
    glu = experts.glu_of("silu")
    sizes = experts.ExpertsShape(
        num_experts=num_experts, hidden_size=hidden, inner_size=inner, glu=glu
    )
    part = experts.experts_of(routing, sizes)
    b = Builder(RandomWeights(), read_weights(width))
    x = rows = ops.parameter([-1, hidden], ov.Type.f32)
    for layer in range(num_layers):
        x = ops.add(x, part(b, x, layer))
    started = time.process_time()
    compiled = ov.Core().compile_model(ov.Model([ops.result(x)], [rows], form), "CPU", PROPERTIES)
    return Compiled(compiled.create_infer_request(), b, time.process_time() - started)


def measure(shape: list[int], width: str, num_layers: int, num_rounds: int) -> None:
    forms = {form: compile_form(form, shape, width, num_layers) for form in FORMS}
    compile_s = ", ".join(f"{form} {compiled.compile_s:.1f} s" for form, compiled in forms.items())
    print(f"\n{'/'.join(map(str, shape))} {width}, {num_layers} layers; compiled: {compile_s}\n")
    print("| tokens | grouped, ms | sliced, ms | sliced / grouped |\n|---:|---:|---:|---:|")
    rng = np.random.default_rng(1)
    for (
        compiled
    ) in forms.values():  # an expert's weights are packed when it has rows for the first time
        compiled.request.infer({0: rng.standard_normal((max(NUM_TOKENS), shape[2]), np.float32)})
    for num_tokens in NUM_TOKENS:
        times = np.zeros((num_rounds + 2, len(forms)))
        for index in range(num_rounds + 2):  # two to warm up
            rows = rng.standard_normal((num_tokens, shape[2]), np.float32)
            for column, compiled in enumerate(forms.values()):
                started = time.process_time()
                compiled.request.infer({0: rows})
                times[index, column] = 1000 * (time.process_time() - started)
        grouped, sliced = np.median(times[2:], axis=0)
        ratio = np.median(times[2:, 1] / times[2:, 0])
        print(f"| {num_tokens} | {grouped:.1f} | {sliced:.1f} | {ratio:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure both forms of a mixture of experts.")
    parser.add_argument("--shapes", nargs="+", default=SHAPES)
    parser.add_argument("--widths", nargs="+", default=["int4", "int8"])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    for shape in arguments.shapes:
        for width in arguments.widths:
            measure(
                [int(size) for size in shape.split("/")], width, arguments.layers, arguments.rounds
            )


if __name__ == "__main__":
    main()
