"""A stored response comes out as it went in, moves on exactly once, and belongs to one key."""

import asyncio

from ouzel.store.base import Store
from ouzel.store.records import Status
from tests.store.making import new_response, progress


async def test_a_response_comes_out_as_it_went_in(store: Store) -> None:
    new = new_response(
        "resp_1", status=Status.QUEUED, asked=["hello"], request=b"{}", events=[b"e0", b"e1"]
    )
    await store.add_response(new)
    found = await store.response("resp_1", "key")
    assert found is not None
    assert (found.status, found.num_events) == (Status.QUEUED, 2)
    given = [name for name in found.__struct_fields__ if name in new.__struct_fields__]
    assert {name: getattr(found, name) for name in given} == {
        name: getattr(new, name) for name in given
    }


async def test_events_continue_the_recorded_numbers(store: Store) -> None:
    await store.add_response(new_response("resp_1", events=[b"e0"]))
    assert await store.record(
        "resp_1", progress(Status.IN_PROGRESS, events=[b"e1", b"e2"]), first_event=1
    )
    assert await store.record("resp_1", progress(events=[b"e3"]), first_event=3)
    assert await store.events("resp_1", "key", after=-1) == (b"e0", b"e1", b"e2", b"e3")
    assert await store.events("resp_1", "key", after=1) == (b"e2", b"e3")
    for after in (3, 2**31 - 1, 2**31, 2**62):
        assert await store.events("resp_1", "key", after=after) == ()


async def test_progress_that_others_have_overtaken_changes_nothing(store: Store) -> None:
    await store.add_response(new_response("resp_1", events=[b"e0"]))
    assert await store.record("resp_1", progress(Status.IN_PROGRESS, events=[b"e1"]), first_event=1)
    assert not await store.record("resp_1", progress(events=[b"other"]), first_event=1)
    found = await store.response("resp_1", "key")
    assert found is not None and found.status is Status.IN_PROGRESS
    assert await store.events("resp_1", "key", after=-1) == (b"e0", b"e1")


async def test_a_response_ends_once(store: Store) -> None:
    await store.add_response(new_response("resp_1", asked=["hello"], request=b"{}"))
    ends = [progress(status, status.value) for status in Status if status.is_final]
    won = await asyncio.gather(*(store.record("resp_1", end, first_event=0) for end in ends))
    assert sum(won) == 1
    found = await store.response("resp_1", "key")
    assert found is not None
    assert found.status is ends[won.index(True)].status
    assert found.request is None


async def test_another_key_sees_and_deletes_nothing(store: Store) -> None:
    await store.add_response(new_response("resp_1", key_id="key", events=[b"e0"]))
    await store.add_response(new_response("resp_2", key_id=None, events=[b"e0"]))
    for response_id, owner, other in (
        ("resp_1", "key", "other"),
        ("resp_1", "key", None),
        ("resp_2", None, "key"),
    ):
        assert await store.response(response_id, other) is None
        assert await store.events(response_id, other, after=-1) == ()
        assert not await store.delete_response(response_id, other)
        assert await store.response(response_id, owner) is not None


async def test_a_deleted_response_is_gone_even_while_it_goes_on(store: Store) -> None:
    await store.add_response(new_response("resp_1", asked=["hello"], events=[b"e0"]))
    assert await store.delete_response("resp_1", "key")
    assert not await store.delete_response("resp_1", "key")
    assert await store.response("resp_1", "key") is None
    assert await store.item("msg_hello", "key") is None
    assert not await store.record("resp_1", progress(), first_event=1)
    assert await store.events("resp_1", "key", after=-1) == ()


async def test_ids_that_no_database_holds_are_unknown(store: Store) -> None:
    for unknown in ("", "\0", "resp_\0", "\ud800", "💥", "x" * 100_000):
        assert await store.response(unknown, "key") is None
        assert await store.item(unknown, "key") is None
