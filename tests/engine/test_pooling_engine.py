"""Tests the engine of an encoder: its batches, its faults, and the end of each text."""

import numpy as np
import pytest

from ouzel.engine.pooling_engine import PoolingEngine
from ouzel.pooling import Pooling
from ouzel.sampling import SamplingParams
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason, StepOutput
from tests.engine.vector_runner import FAILING_TOKEN_ID, VectorRunner


def request(
    request_id: str, *lens: int, priority: int = 0, token_id: int = 1, **pooling: object
) -> EngineRequest:
    """Makes a request whose texts repeat one token."""
    return EngineRequest(
        request_id=request_id,
        prompt_token_ids=[token_id] * sum(lens),
        params=SamplingParams(max_tokens=0),
        n=len(lens),
        priority=priority,
        pooling=Pooling(text_lens=lens, **pooling),  # type: ignore[arg-type]
    )


def run(engine: PoolingEngine) -> list[StepOutput]:
    outputs = []
    while engine.has_unfinished():
        outputs += engine.step()
    return outputs


def vector(output: StepOutput) -> list[float]:
    assert output.vector is not None
    values: list[float] = np.frombuffer(output.vector, "<f4").tolist()
    return values


def test_every_text_ends_once_with_its_own_vector() -> None:
    runner = VectorRunner()
    engine = PoolingEngine(runner)
    engine.add(request("a", 3, 9, 1, second_begins=(2, 9, 1)))
    outputs = run(engine)
    assert sorted((output.index, vector(output)) for output in outputs) == [
        (0, [3, 3, 1, 2]),
        (1, [9, 9, 1, 9]),
        (2, [1, 1, 1, 1]),
    ]
    assert {output.finish_reason for output in outputs} == {FinishReason.STOP}
    assert all(output.timing is not None for output in outputs)


def test_texts_of_similar_length_share_a_batch() -> None:
    runner = VectorRunner(max_num_batched_tokens=20)
    engine = PoolingEngine(runner)
    engine.add(request("a", 5, 16, 4, 15, 5))
    run(engine)
    assert runner.batches == [[5, 5, 4], [16], [15]]


def test_a_better_priority_goes_first_and_alone() -> None:
    runner = VectorRunner()
    engine = PoolingEngine(runner)
    engine.add(request("late", 2, 2, priority=1))
    engine.add(request("early", 3, priority=-1))
    assert [output.request_id for output in run(engine)] == ["early", "late", "late"]
    assert runner.batches == [[3], [2, 2]]


def test_a_text_longer_than_a_step_runs_alone() -> None:
    runner = VectorRunner(max_num_batched_tokens=16)
    engine = PoolingEngine(runner)
    engine.add(request("a", 64, 1))
    run(engine)
    assert runner.batches == [[64], [1]]


def test_a_batch_has_no_more_texts_than_it_may() -> None:
    runner = VectorRunner(max_num_batched_tokens=512)
    engine = PoolingEngine(runner)
    engine.add(request("a", *[1] * 40))
    run(engine)
    assert runner.batches == [[1] * 16, [1] * 16, [1] * 8]


def test_aborted_texts_end_at_once_and_are_not_computed() -> None:
    runner = VectorRunner()
    engine = PoolingEngine(runner)
    engine.add(request("a", 2, 3))
    engine.add(request("b", 4))
    engine.abort("a", 1)
    engine.abort("b")
    engine.abort("nobody")
    reasons = {(output.request_id, output.index): output.finish_reason for output in run(engine)}
    assert reasons == {("a", 0): "stop", ("a", 1): "abort", ("b", 0): "abort"}
    assert runner.batches == [[2]]


def test_the_id_of_an_aborted_request_can_be_used_again() -> None:
    engine = PoolingEngine(VectorRunner())
    engine.add(request("a", 2, 3))
    engine.abort("a")
    engine.add(request("b", 4))
    engine.add(request("a", 5))
    ends = [(output.request_id, output.finish_reason) for output in run(engine)]
    assert (
        ends == [("a", "abort"), ("a", "abort"), ("b", "stop"), ("a", "stop")]
        and not engine.stats().num_waiting
    )


def test_a_fault_ends_its_batch_only() -> None:
    engine = PoolingEngine(VectorRunner())
    engine.add(request("broken", 2, token_id=FAILING_TOKEN_ID, priority=-1))
    engine.add(request("whole", 2))
    broken, whole = run(engine)
    assert (broken.finish_reason, broken.error) == (
        FinishReason.ERROR,
        "the model step failed: a broken device",
    )
    assert whole.finish_reason is FinishReason.STOP


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (request("a", 65), "a text has 65 tokens, max_model_len is 64"),
        (request("a", 3, 0), "a text is empty"),
        (request("a", 1, token_id=260), r"the texts must be token ids in \[0, 260\)"),
        (request("a", 1, token_ids=(3,)), "this model makes no tokens"),
        (request("a", 1, 1, second_begins=(1,)), "second_begins must have 2 values, given 1"),
        (request("a", 1, 1, tasks=(1,)), "tasks must have 2 values, given 1"),
        (request("a", 1, tasks=(3,)), "the tasks must be numbers from 0 to 2, given 3"),
        (request("a", 1, form="tokens"), "the form must be one of text, given tokens"),
        (request("a", 2, 1, visible_lens=(2, 2)), "visible_lens must have 2 values from 1 to"),
        (request("a", 2, visible_lens=(2, 2)), "visible_lens must have 1 values from 1 to"),
        (
            EngineRequest(
                request_id="a", prompt_token_ids=[1], params=SamplingParams(max_tokens=1)
            ),
            "this model makes no tokens",
        ),
    ],
)
def test_impossible_requests_are_refused(wrong: EngineRequest, message: str) -> None:
    engine = PoolingEngine(VectorRunner())
    engine.add(wrong)
    outputs = run(engine)
    assert [output.finish_reason for output in outputs] == [FinishReason.REFUSED] * wrong.n
    with pytest.raises(ValueError, match=message):
        raise ValueError(outputs[0].error)


def test_an_id_in_use_is_refused() -> None:
    engine = PoolingEngine(VectorRunner())
    engine.add(request("a", 1))
    with pytest.raises(ValueError, match="in use"):
        engine.add(request("a", 1))


def test_waiting_texts_are_counted() -> None:
    engine = PoolingEngine(VectorRunner(max_num_batched_tokens=16))
    engine.add(request("a", 16, 16, 16))
    engine.step()
    stats = engine.stats()
    assert (stats.num_running, stats.num_waiting) == (1, 2)
