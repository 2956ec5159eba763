"""A streamed response begins when the store has it and the engine has accepted it.

The store writes it while the engine computes the prompt, or before.
"""

import asyncio

import pytest

from ouzel.store.errors import StoreUnavailable
from ouzel.store.records import Status
from tests.responses.conftest import Maker
from tests.responses.test_ways_through import BEGINS, BEGUN, LONG, event_names


async def test_the_prompt_is_computed_during_the_first_write(maker: Maker) -> None:
    with maker.lock_store():
        run = await maker.begin("Hi", stream=True)
        while not maker.has_computed:
            await asyncio.sleep(0.005)
        assert len(run.log) == 0
        assert await maker.other_store.response(run.id, None) is None
    assert (await run.answer()).status == "completed"


async def test_a_client_that_has_seen_an_event_finds_the_response(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin(LONG, stream=True)
        await anext(run.follow())
        stored = await maker.other_store.response(run.id, None)
        assert stored is not None
        assert stored.status is Status.IN_PROGRESS
    run.cancel()
    await run.answer()


async def test_a_response_that_is_answered_whole_begins_with_its_first_token(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin("Hi")
        await run.generation.accepted.wait()
        await maker.store.response(run.id, None)
        assert len(run.log) == 0
    await run.answer()


async def test_the_store_hears_of_the_first_events_before_there_is_a_token(maker: Maker) -> None:
    with maker.pause_engine():
        run = await maker.begin(LONG, stream=True)
        while len(await maker.other_store.events(run.id, None, after=-1)) < len(BEGUN):
            await asyncio.sleep(0.005)
        run.cancel()
        assert (await event_names(run)) == [*BEGUN, "incomplete"]
    stored = await maker.other_store.response(run.id, None)
    assert stored is not None
    assert stored.status is Status.CANCELLED


async def test_a_response_that_cannot_be_added_is_made_no_further(maker: Maker) -> None:
    with maker.break_store(BEGINS):
        run = await maker.begin(LONG, stream=True)
        with pytest.raises(StoreUnavailable):
            await run.answer()
    assert len(run.log) == 0
    assert run.generation.usage().completion_tokens < len(LONG)


async def test_a_response_that_is_left_while_it_is_added_is_cancelled(maker: Maker) -> None:
    with maker.lock_store():
        run = await maker.begin(LONG, stream=True)
        while not maker.has_computed:
            await asyncio.sleep(0.005)
        run.cancel()
    assert (await run.answer()).status == "cancelled"
    stored = await maker.other_store.response(run.id, None)
    assert stored is not None
    assert stored.status is Status.CANCELLED
