"""A response is added to the store while its prompt is computed; nobody sees an event of it before both are done."""

import asyncio

import pytest

from ouzel.errors import StoreUnavailable
from ouzel.store.records import Status
from tests.responses.conftest import Maker
from tests.responses.test_ways_through import BEGINS, LONG


async def test_the_prompt_is_computed_while_the_store_is_told(maker: Maker) -> None:
    with maker.held_store():
        run = await maker.begin("Hi", stream=True)
        while not maker.has_computed:
            await asyncio.sleep(0.005)
        assert len(run.log) == 0
        assert await maker.other_store.response(run.id, None) is None
    assert (await run.answer()).status == "completed"


async def test_who_has_seen_an_event_finds_the_response(maker: Maker) -> None:
    with maker.idle_engine():
        run = await maker.begin(LONG, stream=True)
        while await maker.other_store.response(run.id, None) is None:
            await asyncio.sleep(0.005)
        assert len(run.log) == 0
    await anext(run.follow())
    stored = await maker.other_store.response(run.id, None)
    assert stored is not None
    assert stored.status is Status.IN_PROGRESS
    run.cancel()
    await run.answer()


async def test_a_response_that_cannot_be_added_is_made_no_further(maker: Maker) -> None:
    with maker.broken_store(BEGINS):
        run = await maker.begin(LONG, stream=True)
        with pytest.raises(StoreUnavailable):
            await run.answer()
    assert len(run.log) == 0
    assert run.generation.usage().completion_tokens < len(LONG)


async def test_a_response_that_is_left_while_it_is_added_is_cancelled(maker: Maker) -> None:
    with maker.held_store():
        run = await maker.begin(LONG, stream=True)
        while not maker.has_computed:
            await asyncio.sleep(0.005)
        run.cancel()
    assert (await run.answer()).status == "cancelled"
    stored = await maker.other_store.response(run.id, None)
    assert stored is not None
    assert stored.status is Status.CANCELLED
