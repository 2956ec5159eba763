"""Compares Ouzel's graphs with transformers in float32, and chunks and batches with each other."""

import dataclasses

import numpy as np
import pytest

from ouzel.config import Precision
from ouzel.engine.base import ForwardBatch
from ouzel.engine.core import EngineCore
from tests.backends import KINDS, of_kinds
from tests.backends.conftest import Golden, Load, read_golden
from tests.backends.forward import Driver, Logits, Sequence, median_error, relative_error
from tests.engine.requests import make_request, run_alone
from tests.release_only import release_only

OF_KINDS = of_kinds("caches of other families")


def test_logits_agree_with_transformers(golden: Golden, load: Load) -> None:
    _, logits = Driver(load(golden.directory)).prefill(golden.prompt, len(golden.prompt))
    assert relative_error(logits, golden.logits) < 1e-5
    assert np.abs(logits - golden.logits).max() < 1e-4 * golden.logits.std()


@pytest.mark.parametrize("golden", of_kinds("prompt logprobs of other families"), indirect=True)
def test_summed_prompt_logprobs_agree_with_transformers(golden: Golden, load: Load) -> None:
    rows = golden.logits[:-1].astype(np.float64)
    given = rows[np.arange(len(rows)), golden.prompt[1:]]
    reference = given - np.log(np.exp(rows).sum(axis=1))

    request = make_request(golden.prompt, max_tokens=0, num_prompt_logprobs=1)
    positions = run_alone(EngineCore(load(golden.directory)), request)[0].prompt_logprobs

    logprobs = np.array([position.sampled.logprob for position in positions])
    assert abs(logprobs.sum() - reference.sum()) < 1e-3
    assert np.abs(logprobs - reference).max() < 1e-4
    assert [position.rank for position in positions] == (
        1 + (rows > given[:, None]).sum(axis=1)
    ).tolist()
    assert [position.top[0].token_id for position in positions] == rows.argmax(axis=1).tolist()


def test_greedy_tokens_after_a_prompt_in_chunks_agree_with_transformers(
    golden: Golden, load: Load
) -> None:
    driver = Driver(load(golden.directory))
    assert driver.greedy(golden.prompt, 24, chunk_len=7) == golden.greedy[:24]


@pytest.mark.release("longer greedy answers")
def test_longer_greedy_answers_agree_with_transformers(golden: Golden, load: Load) -> None:
    tokens = Driver(load(golden.directory)).greedy(golden.prompt, len(golden.greedy), chunk_len=7)
    assert tokens == golden.greedy


@pytest.mark.parametrize("chunk_len", [1, 31, 33])
@pytest.mark.parametrize("golden", of_kinds("further chunks of other families"), indirect=True)
def test_further_chunks_give_the_same_tokens(golden: Golden, load: Load, chunk_len: int) -> None:
    assert Driver(load(golden.directory)).greedy(golden.prompt, 8, chunk_len) == golden.greedy[:8]


@pytest.mark.release("chunks of every size")
def test_every_chunk_size_gives_the_same_tokens(golden: Golden, load: Load) -> None:
    runner = load(golden.directory)
    for chunk_len in range(1, len(golden.prompt) + 1):
        tokens = Driver(runner).greedy(golden.prompt, 8, chunk_len)
        assert tokens == golden.greedy[:8], f"chunks of {chunk_len}"


@pytest.mark.parametrize("golden", of_kinds("batches of other families"), indirect=True)
def test_a_batch_gives_the_tokens_of_each_alone(golden: Golden, load: Load) -> None:
    """Prompts of different lengths join one after the other, so steps mix prefill and decode."""
    runner = load(golden.directory)
    prompts = [golden.prompt[:length] for length in (40, 3, 33, 17)]
    alone = [Driver(runner).greedy(prompt, 12) for prompt in prompts]

    driver = Driver(runner)
    work: list[tuple[Sequence, list[int]]] = []
    together: list[list[int]] = [[] for _ in prompts]
    for num_steps in range(12 + len(prompts) - 1):
        if num_steps < len(prompts):
            work.append((driver.sequence(), prompts[num_steps]))
        for index, row in enumerate(driver.step(work)):
            together[index].append(int(row.argmax()))
            work[index] = (work[index][0], together[index][-1:])
    assert [tokens[:12] for tokens in together] == alone


# With AMX everything is bf16, which rounds the result of each layer: measured 0.015 between a row
# alone and a row in a batch, and 0.0275 between each of them and float32. Without AMX activations
# are int8 in groups, and rows agree unless they take other paths.
ROW_TOLERANCES = {"f32": 1e-3, "int8": 0.02, "bf16": 0.02}


def test_in_the_serving_precision_a_row_does_not_depend_on_its_batch(load: Load) -> None:
    golden = read_golden("qwen3")
    runner = load(golden.directory, "int8", "auto", "auto")
    prompts = [golden.prompt[:length] for length in (40, 3, 33, 17)]
    alone = []
    for prompt in prompts:
        driver = Driver(runner)
        sequence, logits = driver.prefill(prompt, len(prompt))
        alone.append([logits[-1], driver.step([(sequence, [5])])[0]])
    driver = Driver(runner)
    sequences = [driver.sequence() for _ in prompts]
    first = driver.step(list(zip(sequences, prompts, strict=True)))
    second = driver.step([(sequence, [5]) for sequence in sequences])
    for row in range(len(prompts)):
        assert relative_error(first[row], alone[row][0]) < ROW_TOLERANCES[runner.info.precision]
        assert relative_error(second[row], alone[row][1]) < ROW_TOLERANCES[runner.info.precision]


# Limits of the median error of rows. Measured on these checkpoints with and without AMX, at most:
# bf16 0.023, int8 0.064, int4 0.51, and 0.167 over all rows with int8. Random weights are the worst
# case: trained weights lie closer together, and training makes networks damp noise.
TOLERANCES: dict[str, float] = {"bf16": 0.04, "int8": 0.1, "int4": 0.7}


@pytest.mark.parametrize("weights", ["int4", *release_only("bf16 weights of all kinds", "bf16")])
@pytest.mark.parametrize("golden", of_kinds("compressed weights of other families"), indirect=True)
def test_compressed_weights_stay_within_their_tolerance(
    golden: Golden, load: Load, weights: str
) -> None:
    assert_is_within_tolerance(golden, load, weights)


@pytest.mark.parametrize(
    "golden",
    of_kinds("int8 weights of further kinds", kinds=["llama-bias", "granitemoehybrid"]),
    indirect=True,
)
def test_int8_weights_stay_within_their_tolerance(golden: Golden, load: Load) -> None:
    assert_is_within_tolerance(golden, load, "int8")


@pytest.mark.parametrize(
    "weights", ["int8", *release_only("integer activations beside int4 weights", "int4")]
)
@pytest.mark.parametrize(
    "name",
    of_kinds(
        "integer activations of further kinds",
        KINDS,
        ["llama-bias", "gpt-oss", "granitemoehybrid", "deepseek-v2"],
    ),
)
def test_integer_activations_stay_within_the_tolerance(name: str, load: Load, weights: str) -> None:
    """`auto` chooses this precision on a CPU without bf16."""
    assert_is_within_tolerance(read_golden(name), load, weights, "int8")


def assert_is_within_tolerance(
    golden: Golden, load: Load, weights: str, precision: Precision = "auto"
) -> None:
    runner = load(golden.directory, weights, precision, "auto")
    _, logits = Driver(runner).prefill(golden.prompt, len(golden.prompt))
    assert median_error(logits, golden.logits) < TOLERANCES[weights]
    assert relative_error(logits, golden.logits) < 2 * TOLERANCES[weights]
    assert runner.info.weights == weights
    assert precision in ("auto", runner.info.precision)


def test_a_step_returns_the_sampled_rows(load: Load) -> None:
    """Only the last chunk of a prompt samples rows."""
    runner = load(read_golden("llama").directory)
    batch = ForwardBatch(
        token_ids=np.arange(5),
        positions=np.arange(5),
        past_lens=np.zeros(1, np.int32),
        subsequence_begins=np.array([0, 5], np.int32),
        block_indices=np.zeros(1, np.int32),
        block_indices_begins=np.array([0, 1], np.int32),
        max_context_len=5,
        sampled_rows=np.zeros(0, np.int64),
    )
    assert runner.run(batch).shape == (0, 320)
    logits = runner.run(dataclasses.replace(batch, sampled_rows=np.array([4, 2])))
    assert logits.shape == (2, 320)
    assert logits.flags.writeable  # the sampler works in place


def test_copied_blocks_continue_like_the_original(load: Load) -> None:
    golden = read_golden("qwen3")
    driver = Driver(load(golden.directory, "int8", "auto", "auto"))
    original, logits = driver.prefill(golden.prompt, len(golden.prompt))
    fork = driver.sequence()
    driver.runner.copy_blocks(original.blocks, fork.blocks)
    fork.num_cached = original.num_cached
    token_id = int(logits[-1].argmax())
    continued = driver.continue_greedy(original, token_id, 16)
    assert driver.continue_greedy(fork, token_id, 16) == continued


@pytest.mark.parametrize("golden", OF_KINDS, indirect=True)
def test_a_repeated_step_gives_the_same_logits(golden: Golden, load: Load) -> None:
    """The engine runs a step again after a rejected proposal, which left rows in the block."""
    driver = Driver(load(golden.directory, "int8", "f32", "u8"))
    sequence, _ = driver.prefill(golden.prompt, len(golden.prompt))
    end, slot = sequence.num_cached, sequence.slot
    first = driver.step([(sequence, [5])])
    driver.step([(sequence, [6, 7, 8])])
    sequence.num_cached, sequence.slot = end, slot
    np.testing.assert_array_equal(driver.step([(sequence, [5])]), first)


@pytest.mark.parametrize("golden", OF_KINDS, indirect=True)
def test_a_quantised_cache_does_not_depend_on_how_it_was_filled(golden: Golden, load: Load) -> None:
    """Computes a prompt in one chunk, in odd chunks, and beside another; rounding gives 1e-6."""
    runner = load(golden.directory, "int8", "f32", "u8")

    def continued(chunk_len: int, neighbour: list[int]) -> Logits:
        driver = Driver(runner)
        sequence, other = driver.sequence(), driver.sequence()
        chunks = [
            golden.prompt[start : start + chunk_len]
            for start in range(0, len(golden.prompt), chunk_len)
        ]
        beside = [(other, neighbour)] if neighbour else []
        rows = [driver.step([*beside, (sequence, chunk)])[-1] for chunk in [*chunks, [5], [6], [7]]]
        return np.array(rows[-3:])

    alone = continued(len(golden.prompt), [])
    for chunk_len, neighbour in ((7, []), (len(golden.prompt), [9, 4]), (11, [9, 4])):
        assert relative_error(continued(chunk_len, neighbour), alone) < 1e-3
