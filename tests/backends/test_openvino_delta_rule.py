"""Compares the gated delta rule in chunks and in single tokens with numpy."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.checks.state_check import apply_delta_rule
from ouzel.backends.openvino.graph.delta_rule import DeltaHeads, delta_rule
from ouzel.backends.openvino.graph.paged import PagedGraph
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.chunked_rows import (
    CHUNK_WORK,
    ChunkedRows,
    chunk_inputs,
    chunk_length,
    is_in_chunks,
)
from tests.backends.forward import relative_error

Array = NDArray[np.float32]

HEADS = DeltaHeads(num_key_heads=2, num_value_heads=6, key_dim=16, value_dim=8)
NUM_SLOTS = 12


class Layer:
    """A compiled layer with the delta rule, and its table of states."""

    def __init__(self, precision: ov.Type) -> None:
        graph = PagedGraph()
        mixed = graph.input("mixed", [-1, HEADS.size], ov.Type.f32)
        rates = graph.input("rates", [-1, 2 * HEADS.num_value_heads], ov.Type.f32)
        model = graph.finish(delta_rule(graph, mixed, rates, 0, HEADS))
        compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": precision})
        self.arrays = graph.arrays  # the compiled model points into the arrays
        self.names = {port.get_any_name() for port in compiled.inputs}
        self.request = compiled.create_infer_request()
        self.chunked_rows = ChunkedRows()
        num_heads, value_dim, key_dim = HEADS.state_shape
        self.table = np.zeros((NUM_SLOTS, num_heads, value_dim * key_dim), np.float32)
        self.states = self.table.reshape(NUM_SLOTS, *HEADS.state_shape)

    def run(self, mixed: Array, rates: Array, lens: list[int], slots: NDArray[np.int32]) -> Array:
        begins = np.concatenate([[0], np.cumsum(lens)]).astype(np.int32)
        inputs = {
            "mixed": mixed,
            "rates": rates,
            "state.delta.0": self.table,
            "past_lens": np.full(len(lens), 3, np.int32),
            "state_slots": slots.reshape(-1),
            "state_slots_begins": np.arange(0, 2 * len(lens) + 1, 2, dtype=np.int32),
            "state_interval": np.full(len(lens), 2**30, np.int32),
            "subsequence_begins": begins,
            **self.chunked_rows.inputs(begins, slots[:, 0]),
        }
        for name in self.names & set(inputs):
            self.request.set_tensor(name, ov.Tensor(inputs[name], shared_memory=True))
        self.request.infer()
        chunked = is_in_chunks(begins)
        if chunked.any():
            self.states[slots[chunked, 1]] = self.request.get_tensor("next_state.delta.0").data
        return np.array(self.request.get_tensor("logits").data)


@pytest.fixture(scope="module")
def layer() -> Layer:
    return Layer(ov.Type.f32)


def random_rows(num_rows: int, kind: str = "") -> tuple[Array, Array]:
    """Draws the inputs of the rule: queries, keys and values, and the rates of each row.

    `alike`: all keys are nearly equal, rows are learnt almost wholly and decay slowly.
    `forgetful`: states decay quickly.
    """
    random = np.random.default_rng(num_rows)
    mixed = random.normal(size=(num_rows, HEADS.size))
    log_decay = -random.exponential(0.2, size=(num_rows, HEADS.num_value_heads))
    beta = random.uniform(size=log_decay.shape)
    if kind == "forgetful":
        log_decay *= 30
    if kind == "alike":
        keys = slice(HEADS.key_size, 2 * HEADS.key_size)
        mixed[:, keys] = mixed[0, keys] + 0.01 * mixed[:, keys]
        log_decay, beta = 0.001 * log_decay, 1 - 0.01 * beta
    return mixed.astype(np.float32), np.concatenate([log_decay, beta], 1).astype(np.float32)


def expected(mixed: Array, rates: Array, state: Array) -> tuple[Array, Array]:
    query, key, value = np.split(mixed, [HEADS.key_size, 2 * HEADS.key_size], axis=1)
    log_decay, beta = np.split(rates, 2, axis=1)
    return apply_delta_rule(
        query.reshape(len(mixed), HEADS.num_key_heads, -1),
        key.reshape(len(mixed), HEADS.num_key_heads, -1),
        value.reshape(len(mixed), HEADS.num_value_heads, -1),
        state,
        log_decay,
        beta,
    )


@pytest.mark.parametrize("kind", ["", "alike", "forgetful"])
@pytest.mark.parametrize(
    "lens",
    [
        [1],
        [2, 3, 1],
        [8, 1, 7],
        [32],
        [1, 33, 1, 96, 2, 8],
        [70],
        [319, 1],
    ],
)
def test_sequences_of_all_lengths_beside_each_other(
    lens: list[int], kind: str, layer: Layer
) -> None:
    """Sequences read the slot of zeros or shared slots; each sequence writes its own slot."""
    mixed, rates = random_rows(sum(lens), kind)
    layer.states[:] = np.random.default_rng(0).normal(size=layer.states.shape)
    layer.states[0] = 0
    before = layer.states.copy()
    slots = np.array([(each % 3, 3 + each) for each in range(len(lens))], np.int32)
    answers = layer.run(mixed, rates, lens, slots)
    for begin_and_end, (read, written) in zip(pairwise(np.cumsum([0, *lens])), slots, strict=True):
        own = slice(*begin_and_end)
        rows, state = expected(mixed[own], rates[own], before[read])
        assert relative_error(answers[own], rows) < 1e-5
        assert relative_error(layer.states[written], state) < 1e-5
        before[written] = layer.states[written]
    assert np.array_equal(layer.states, before), "no other slot is written"


def test_a_sequence_continues_in_its_slot(layer: Layer) -> None:
    lens = [100, 1, 64, 7, 30]
    mixed, rates = random_rows(sum(lens))
    layer.states[:] = 0
    rows, state = expected(mixed, rates, layer.states[1])
    parts = [
        layer.run(mixed[begin:end], rates[begin:end], [end - begin], np.array([(1, 1)], np.int32))
        for begin, end in pairwise(np.cumsum([0, *lens]))
    ]
    assert relative_error(np.concatenate(parts), rows) < 1e-5
    assert relative_error(layer.states[1], state) < 1e-5


def test_values_that_are_not_finite_stay_in_their_sequence(layer: Layer) -> None:
    """A broken state or infinite inputs of one sequence leave its neighbours' bits unchanged."""
    lens = [40, 1, 3, 40, 1, 70]
    ends = np.cumsum(lens)
    mixed, rates = random_rows(sum(lens))
    layer.states[:] = 0
    slots = np.array([(each, each) for each in range(1, 7)], np.int32)
    whole = layer.run(mixed, rates, lens, slots)
    states = layer.states.copy()
    for broken in range(len(lens)):
        own = slice(ends[broken] - lens[broken], ends[broken])
        layer.states[:] = 0
        layer.states[1 + broken] = np.nan
        spoilt = mixed.copy()
        spoilt[own] = np.inf
        answers = layer.run(spoilt, rates, lens, slots)
        assert np.isnan(answers[own]).all()
        assert np.array_equal(np.delete(answers, own, axis=0), np.delete(whole, own, axis=0))
        assert np.array_equal(
            np.delete(layer.states, 1 + broken, axis=0), np.delete(states, 1 + broken, axis=0)
        )


def test_states_and_rates_are_exact_where_the_model_is_in_bf16() -> None:
    """The rule rounds only queries, keys and values to bf16; this input is rounded already."""
    layer = Layer(ov.Type.bf16)
    lens = [32, 1]
    mixed, rates = random_rows(sum(lens))
    mixed = (mixed.view(np.uint32) & 0xFFFF0000).view(np.float32)
    layer.run(mixed, rates, lens, np.array([(0, 1), (0, 2)], np.int32))
    for slot, own in ((1, slice(0, 32)), (2, slice(32, None))):
        _, state = expected(mixed[own], rates[own], layer.states[0])
        assert relative_error(layer.states[slot], state) < 1e-5


def test_a_step_without_rows_in_chunks_has_no_chunks() -> None:
    inputs = chunk_inputs(np.array([0, 1, 2], np.int32), np.array([4, 5], np.int32))
    assert {name: array.tolist() for name, array in inputs.items()} == {
        "single_rows": [0, 1],
        "single_begins": [0, 1, 2],
        "chunk_rows": [],  # [0, 8]
        "chunk_slots": [],
        "last_chunks": [],
        "answer_rows": [0, 1],
    }


@pytest.mark.parametrize(
    ("lens", "length"),
    [
        ([], 8),
        ([2], 8),
        ([8] * 20, 8),
        ([9], 32),
        ([60], 64),
        ([70], 32),
        ([512], 64),
        ([480, 5, 5], 32),
    ],
)
def test_the_length_of_chunks_minimises_the_work(lens: list[int], length: int) -> None:
    assert chunk_length(np.array(lens, np.int32)) == length


def test_few_long_sequences_beside_many_short_ones_are_cut_into_short_chunks() -> None:
    assert chunk_length(np.array([40] + [6] * 20, np.int32)) < max(CHUNK_WORK)


def test_the_first_step_after_several_chunks_has_an_unused_chunk() -> None:
    rows = ChunkedRows()
    steps = [[1], [90], [1, 1], [1], [8], [1], [32], [1]]
    made = [
        rows.inputs(
            np.cumsum([0, *lens]).astype(np.int32), np.arange(1, 1 + len(lens), dtype=np.int32)
        )
        for lens in steps
    ]
    assert [len(inputs["chunk_slots"]) for inputs in made] == [0, 3, 1, 0, 1, 0, 1, 1]
    assert [len(inputs["last_chunks"]) for inputs in made] == [0, 1, 0, 0, 1, 0, 1, 0]
    assert made[2]["answer_rows"].tolist() == [0, 1]


def test_single_rows_are_the_same_after_a_long_prompt(layer: Layer) -> None:
    mixed, rates = random_rows(2)
    slots = np.array([(3, 3), (4, 4)], np.int32)
    layer.states[:] = 0
    before = layer.run(mixed, rates, [1, 1], slots)
    layer.run(*random_rows(200), [200], np.array([(0, 5)], np.int32))
    layer.states[:] = 0
    layer.run(*random_rows(200), [200], np.array([(0, 5)], np.int32))
    states = layer.states[5].copy()
    assert np.array_equal(layer.run(mixed, rates, [1, 1], slots), before)
    assert np.array_equal(layer.states[5], states)
