"""Searches the fake model's outputs in the plainest way, for comparison with the engine."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.types.engine_request import EngineRequest
from tests.engine.requests import Result

Output = tuple[tuple[int, ...], float]  # token ids, score


def tiny_runner(vocab_size: int) -> FakeRunner:
    return FakeRunner(
        vocab_size=vocab_size, num_blocks=1000, max_num_seqs=128, max_num_batched_tokens=128
    )


def log_probabilities(runner: FakeRunner, context: list[int]) -> NDArray[np.float64]:
    """Computes the log probabilities of the next token from the whole context."""
    batch = ForwardBatch(
        token_ids=np.array(context),
        positions=np.arange(len(context)),
        past_lens=np.zeros(1, np.int32),
        subsequence_begins=np.array([0, len(context)], np.int32),
        block_indices=np.arange(-(-len(context) // runner.info.block_size), dtype=np.int32),
        block_indices_begins=np.array([0, -(-len(context) // runner.info.block_size)], np.int32),
        max_context_len=len(context),
        sampled_rows=np.array([len(context) - 1]),
    )
    logits = runner.run(batch)[0].astype(np.float64)
    normalised: NDArray[np.float64] = logits - np.log(np.exp(logits).sum())
    return normalised


def all_outputs(request: EngineRequest, vocab_size: int) -> list[Output]:
    """Returns every possible output with its score, best first."""
    runner, params = tiny_runner(vocab_size), request.params
    assert params.beam_search is not None
    outputs: dict[tuple[int, ...], float] = {}
    for token_ids in product(range(vocab_size), repeat=params.max_tokens):
        stops = [
            place for place, token_id in enumerate(token_ids) if token_id in request.eos_token_ids
        ]
        output = token_ids[: stops[0] + 1] if stops else token_ids
        if output in outputs:
            continue
        context = list(request.prompt_token_ids)
        total = 0.0
        for token_id in output:
            total += float(log_probabilities(runner, context)[token_id])
            context.append(token_id)
        outputs[output] = total / len(output) ** params.beam_search.length_penalty
    return sorted(outputs.items(), key=lambda item: -item[1])


def collect_outputs(results: list[Result]) -> list[Output]:
    return [(tuple(result.token_ids), result.final.score or 0.0) for result in results]


def assert_same(found: list[Output], expected: list[Output]) -> None:
    assert [token_ids for token_ids, _ in found] == [token_ids for token_ids, _ in expected]
    assert [score for _, score in found] == pytest.approx(
        [score for _, score in expected], abs=1e-5
    )


def reference_search(
    request: EngineRequest,
    vocab_size: int,
    may_come: Callable[[tuple[int, ...]], bool] = lambda output: True,
) -> list[Output]:
    """Runs the grouped beam search of Vijayakumar et al. 2016 on plain lists, without a cache.

    `may_come` tells whether the given tokens may be an output, or the beginning of one.
    """
    runner, params = tiny_runner(vocab_size), request.params
    beam = params.beam_search
    assert beam is not None
    width = beam.width // beam.num_groups
    running: list[list[tuple[float, list[int]]]] = [[(0.0, [])] for _ in range(beam.num_groups)]
    finished: list[list[Output]] = [[] for _ in range(beam.num_groups)]
    for step in range(1, params.max_tokens + 1):
        taken: list[int] = []
        for group in range(beam.num_groups):
            candidates = []
            for score, output in running[group]:
                row = log_probabilities(runner, [*request.prompt_token_ids, *output])
                for token_id in range(vocab_size):
                    penalty = beam.diversity_penalty * taken.count(token_id)
                    if may_come((*output, token_id)):
                        candidates.append(
                            (score + float(row[token_id]) - penalty, [*output, token_id])
                        )
            candidates.sort(key=lambda each: -each[0])
            ends = [
                step == params.max_tokens or output[-1] in request.eos_token_ids
                for _, output in candidates
            ]
            for (score, output), is_end in zip(candidates[:width], ends, strict=False):
                if is_end:
                    finished[group].append(
                        (tuple(output), score / len(output) ** beam.length_penalty)
                    )
            finished[group] = sorted(finished[group], key=lambda each: -each[1])[:width]
            going_on = [each for each in candidates if each[1][-1] not in request.eos_token_ids][
                :width
            ]
            taken += [output[-1] for _, output in going_on]
            running[group] = [] if step == params.max_tokens else going_on
            if running[group] and len(finished[group]) == width:
                best = running[group][0][0] / step**beam.length_penalty
                if beam.early_stopping or best <= finished[group][-1][1]:
                    running[group] = []
    return sorted((each for group in finished for each in group), key=lambda each: -each[1])
