"""Each way of a response leads through its stages, on a real engine client and a real store."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from ouzel.api.ovms.responses import response_dialect
from ouzel.errors import UNEXPECTED, EngineFailed, EngineUnavailable
from ouzel.responses.run import Run
from ouzel.responses.stage import STEPS, Stage
from ouzel.responses.stored.end_stored import cancel_stored
from ouzel.responses.stored_progress import decode_response
from ouzel.store.errors import StoreUnavailable
from ouzel.store.records import Status
from tests.responses.conftest import Maker

NEW, QUEUED, RUNNING, ENDING = Stage.NEW, Stage.QUEUED, Stage.RUNNING, Stage.ENDING
ENDED, REFUSED, LEFT, LOST = Stage.ENDED, Stage.REFUSED, Stage.LEFT, Stage.LOST

BEGINS = "BEFORE INSERT ON responses"
ENDS = "BEFORE UPDATE OF body ON responses WHEN new.status NOT IN ('queued', 'in_progress')"
COMPLETES = "BEFORE UPDATE OF body ON responses WHEN new.status = 'completed'"
IS_DROPPED = "BEFORE DELETE ON responses"
OUR_FAULT = "RAISE(ABORT, 'a bug')"
LONG = "x" * 2000

Way = Callable[[Maker], Awaitable[None]]
WAYS: list[tuple[Way, list[Stage]]] = []


def way(*stages: Stage) -> Callable[[Way], Way]:
    """Declares the stages through which a way leads, except the first stage."""

    def declare(take: Way) -> Way:
        WAYS.append((take, list(stages)))
        return take

    return declare


@way(RUNNING, ENDING, ENDED)
async def somebody_waits_for_it(maker: Maker) -> None:
    run = await maker.begin("Hi")
    assert (await run.answer()).status == "completed"


@way(RUNNING, ENDING, ENDED)
async def somebody_follows_it(maker: Maker) -> None:
    run = await maker.begin("Hi", stream=True)
    assert await event_names(run) == [*BEGUN, *SAYING_HI, "completed"]


@way(RUNNING, ENDING, ENDED)
async def nobody_keeps_it(maker: Maker) -> None:
    run = await maker.begin("Hi", store=False)
    assert (await run.answer()).status == "completed"
    assert run.is_settled


@way(QUEUED, RUNNING, ENDING, ENDED)
async def it_is_made_in_the_background(maker: Maker) -> None:
    run = await maker.begin("Hi", background=True)
    assert (await run.answer()).status == "queued"
    assert await event_names(run) == ["created", "queued", "in_progress", *SAYING_HI, "completed"]
    assert run.is_settled


@way(ENDING, ENDED)
async def it_is_cancelled_before_it_runs(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi")
        run.cancel()
        assert (await run.answer()).status == "cancelled"


@way(QUEUED, ENDING, ENDED)
async def it_is_cancelled_in_the_queue(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi", background=True)
        await run.answer()
        run.cancel()
        assert await event_names(run) == ["created", "queued", "incomplete"]
    assert run.response.status == "cancelled"


@way(RUNNING, ENDING, ENDED)
async def it_is_cancelled_while_it_runs(maker: Maker) -> None:
    run = await maker.begin(LONG)
    await maker.wait_until(RUNNING)
    run.cancel()
    assert (await run.answer()).status == "cancelled"


@way(QUEUED, ENDING, ENDED)
async def it_is_cancelled_and_then_left(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi", background=True)
        await run.answer()
        run.cancel()
        await maker.runs.close()
    assert run.response.status == "cancelled"


@way(REFUSED)
async def it_fails_before_it_begins(maker: Maker) -> None:
    run = await maker.begin("<|die|>")
    with pytest.raises(EngineFailed):
        await run.answer()
    assert run.is_settled
    assert await maker.store.response(run.id, None) is None


@way(RUNNING, ENDING, ENDED)
async def it_fails_before_its_first_token(maker: Maker) -> None:
    run = await maker.begin("<|die|>", stream=True)
    assert await event_names(run) == [*BEGUN, "failed"]
    stored = await maker.store.response(run.id, None)
    assert stored is not None
    assert decode_response(stored) == run.response


@way(RUNNING, ENDING, ENDED)
async def it_is_cancelled_before_its_first_token(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi", stream=True)
        await anext(run.follow())
        run.cancel()
        assert await event_names(run) == [*BEGUN, "incomplete"]
    assert run.response.status == "cancelled"


@way(RUNNING, ENDING, ENDED)
async def it_is_left_before_its_first_token(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi", stream=True)
        await anext(run.follow())
        await maker.runs.close()
    assert await event_names(run) == [*BEGUN, "failed"]


@way(QUEUED, ENDING, ENDED)
async def it_fails_in_the_queue(maker: Maker) -> None:
    run = await maker.begin("<|die|>", background=True)
    assert await event_names(run) == ["created", "queued", "failed"]


@way(RUNNING, ENDING, ENDED)
async def it_fails_while_it_runs(maker: Maker) -> None:
    run = await maker.begin("<|fail|>")
    with pytest.raises(EngineFailed):
        await run.answer()
    assert (run.response.status, run.is_settled) == ("failed", True)


@way(REFUSED)
async def it_is_left_while_somebody_waits_for_the_engine(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi")
        await maker.runs.close()
    with pytest.raises(EngineUnavailable):
        await run.answer()


@way(QUEUED, LEFT)
async def it_is_left_in_the_queue(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi", background=True)
        await run.answer()
        await maker.runs.close()
    with pytest.raises(EngineUnavailable):
        await event_names(run)
    assert (run.response.status, run.is_settled) == ("queued", False)


@way(QUEUED, RUNNING, ENDING, ENDED)
async def it_is_left_while_it_runs(maker: Maker) -> None:
    run = await maker.begin(LONG, background=True)
    await maker.wait_until(RUNNING)
    await maker.runs.close()
    assert (await event_names(run))[-1] == "failed"


@way(RUNNING, ENDING, ENDED)
async def it_is_steered(maker: Maker) -> None:
    run = await maker.begin("<think>Who?</think>" + LONG)
    while not run.response.output:
        await asyncio.sleep(0.005)
    run.steer()
    response = await run.answer()
    assert response.incomplete_details is not None
    assert (response.incomplete_details.reason, len(response.output)) == ("steered", 1)


@way(QUEUED, ENDING, ENDED)
async def it_is_ended_elsewhere_in_the_queue(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi", background=True)
        await run.answer()
        await cancel_elsewhere(maker, run)
    events = [event async for events in run.follow() for event in events]
    assert tuple(events) == await maker.store.events(run.id, None, after=-1)


@way(QUEUED, RUNNING, ENDING, ENDED)
async def it_is_ended_elsewhere_while_it_runs(maker: Maker) -> None:
    run = await maker.begin(LONG, background=True)
    await maker.wait_until(RUNNING)
    await cancel_elsewhere(maker, run)
    assert (await event_names(run))[-1] == "incomplete"
    assert (run.response.status, run.is_settled) == ("cancelled", True)


@way(LOST)
async def the_store_cannot_add_it(maker: Maker) -> None:
    with maker.break_store(BEGINS):
        run = await maker.begin("Hi", background=True)
        with pytest.raises(StoreUnavailable):
            await run.answer()


@way(LOST)
async def the_store_cannot_drop_it(maker: Maker) -> None:
    # the store adds responses of a conversation before their first token
    await maker.store.create_conversation("conv_0", None, {}, [])
    with maker.break_store(IS_DROPPED), maker.pause_engine():
        run = await maker.begin("Hi", conversation="conv_0")
        while not run.is_stored:
            await maker.store.response(run.id, None)
        await maker.runs.close()
    with pytest.raises(EngineUnavailable):
        await run.answer()
    assert not run.is_settled


@way(RUNNING, ENDING, LOST)
async def the_store_cannot_keep_its_end(maker: Maker) -> None:
    with maker.break_store(ENDS):
        run = await maker.begin("Hi", stream=True)
        with pytest.raises(StoreUnavailable):
            await event_names(run)
    assert not run.is_settled


@way(QUEUED, RUNNING, ENDING, ENDED)
async def it_waits_until_the_store_can_keep_its_end(maker: Maker) -> None:
    with maker.break_store(ENDS):
        run = await maker.begin("Hi", background=True)
        await maker.wait_until(ENDING)
        assert run.response.status == "in_progress"
    assert (await event_names(run))[-1] == "completed"


@way(QUEUED, RUNNING, ENDING, LOST)
async def it_is_left_while_the_store_cannot_keep_its_end(maker: Maker) -> None:
    with maker.break_store(ENDS):
        run = await maker.begin("Hi", background=True)
        await maker.wait_until(ENDING)
        await maker.runs.close()
    with pytest.raises(StoreUnavailable):
        await event_names(run)


@way(RUNNING, ENDING, ENDING, ENDED)
async def its_end_meets_a_fault_of_ours(maker: Maker) -> None:
    with maker.break_store(COMPLETES, OUR_FAULT):
        run = await maker.begin("Hi", stream=True)
        assert (await event_names(run))[-1] == "failed"
    assert run.response.error is not None
    assert run.response.error.message == UNEXPECTED


BEGUN = ["created", "in_progress"]
SAYING_HI = [
    "output_item.added",
    "content_part.added",
    "output_text.delta",
    "output_text.done",
    "content_part.done",
    "output_item.done",
]


async def event_names(run: Run) -> list[str]:
    """Follows the run to its end and returns the names of its events, without repetitions.

    Repeated names count once, because a busy machine puts several pieces of a text into one event.
    """
    events = [msgspec.json.decode(event) async for events in run.follow() for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return [
        name
        for name, _ in itertools.groupby(
            event["type"].removeprefix("response.") for event in events
        )
    ]


async def cancel_elsewhere(maker: Maker, run: Run) -> None:
    stored = await maker.other_store.response(run.id, None)
    assert stored is not None
    assert await cancel_stored(maker.other_store, stored) is not None


@pytest.mark.parametrize(("take", "stages"), WAYS, ids=[take.__name__ for take, _ in WAYS])
async def test_a_way_through(maker: Maker, take: Way, stages: list[Stage]) -> None:
    await take(maker)
    await maker.runs.close()
    assert maker.stages() == stages


async def test_a_response_left_in_the_queue_is_queued_again(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi", background=True)
        await run.answer()
        run.leave()
        await run.task
    watching = asyncio.create_task(maker.runs.watch())
    await maker.wait_until(ENDED)
    watching.cancel()
    assert maker.stages() == [QUEUED, LEFT, QUEUED, RUNNING, ENDING, ENDED]


async def test_a_body_that_was_queued_without_a_model_runs_on_a_server_of_ovms_profile(
    maker: Maker,
) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi", background=True)
        await run.answer()
        run.leave()
        await run.task
    maker.change_dialect(response_dialect("ovms"))
    watching = asyncio.create_task(maker.runs.watch())
    while (
        stored := await maker.store.response(run.id, None)
    ) is None or not stored.status.is_final:
        await asyncio.sleep(0.005)
    watching.cancel()
    assert stored.status is Status.COMPLETED


def test_the_ways_take_every_step_that_is_allowed() -> None:
    steps = {pair for _, stages in WAYS for pair in itertools.pairwise([NEW, *stages])}
    assert steps == {(stage, following) for stage in Stage for following in STEPS[stage]}
