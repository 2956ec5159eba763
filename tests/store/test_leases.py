"""Several servers share one database; the work of a dead server is taken over."""

import asyncio
import time
from collections.abc import Iterable

from ouzel.store.base import Store
from ouzel.store.records import Status, StoredResponse
from tests.store.conftest import OpenStore
from tests.store.making import new_response, progress

SHORT_S = 0.2


def ids(taken: Iterable[StoredResponse]) -> list[str]:
    return [response.id for response in taken]


async def add_queued(store: Store, *response_ids: str, model: str = "model") -> None:
    for response_id in response_ids:
        await store.add_response(
            new_response(response_id, model=model, status=Status.QUEUED, request=b"{}")
        )


async def wait_for_abandoned(store: Store) -> list[str]:
    while not (taken := await store.take_abandoned()):
        await asyncio.sleep(0.02)
    return ids(taken)


async def test_a_living_server_owns_its_responses(opened: OpenStore) -> None:
    one, other = await opened(), await opened()
    await one.add_response(new_response("resp_1"))
    await add_queued(one, "resp_2")
    assert await other.take_abandoned() == []
    assert await other.take_queued(["model"], 10) == []


async def test_a_dead_servers_responses_are_taken_once_its_lease_is_over(opened: OpenStore) -> None:
    dead, living = await opened(lease_s=SHORT_S), await opened()
    await dead.add_response(new_response("resp_1", events=[b"e0"]))
    await add_queued(dead, "resp_2")
    assert await wait_for_abandoned(living) == ["resp_1"]
    assert await living.take_abandoned() == []
    assert ids(await living.take_queued(["model"], 10)) == ["resp_2"]
    assert await living.take_queued(["model"], 10) == []


async def test_a_server_whose_lease_is_over_does_not_take_from_itself(opened: OpenStore) -> None:
    """A lease may be over because the clock was set forward, or because the machine has slept."""
    living, other = await opened(lease_s=-1.0), await opened()
    await living.add_response(new_response("resp_1"))
    await add_queued(living, "resp_2")
    assert await living.take_abandoned() == []
    assert await living.take_queued(["model"], 10) == []
    assert ids(await other.take_abandoned()) == ["resp_1"]
    assert ids(await other.take_queued(["model"], 10)) == ["resp_2"]


async def test_a_server_that_beats_stays_alive(opened: OpenStore) -> None:
    lease_s = 1.0
    beating, other = await opened(lease_s=lease_s), await opened()
    first_lease_is_over = time.monotonic() + lease_s
    is_shown = False
    while not is_shown:
        beat_at = time.monotonic()
        await beating.beat()
        await beating.add_response(new_response())
        taken = await other.take_abandoned()
        if time.monotonic() < beat_at + lease_s:  # else this machine was too slow to tell
            assert taken == []
            is_shown = beat_at > first_lease_is_over
        await asyncio.sleep(0.05)


async def test_a_server_that_had_nothing_to_do_is_alive_again_with_its_next_response(
    opened: OpenStore,
) -> None:
    lease_s = 1.0
    resting, other = await opened(lease_s=lease_s), await opened()
    is_shown = False
    while not is_shown:
        await asyncio.sleep(lease_s * 1.1)
        added_at = time.monotonic()
        await resting.add_response(new_response())
        taken = await other.take_abandoned()
        is_shown = time.monotonic() < added_at + lease_s  # else this machine was too slow to tell
        assert taken == [] or not is_shown


async def test_a_server_that_closes_leaves_its_work_at_once(opened: OpenStore) -> None:
    closing, other = await opened(), await opened()
    await closing.add_response(new_response("resp_1"))
    await add_queued(closing, "resp_2")
    await closing.close()
    assert ids(await other.take_abandoned()) == ["resp_1"]
    assert ids(await other.take_queued(["model"], 10)) == ["resp_2"]


async def test_queued_responses_are_taken_oldest_first_by_servers_of_their_model(
    opened: OpenStore,
) -> None:
    one, other = await opened(), await opened()
    await add_queued(one, "resp_1", "resp_2", "resp_3")
    await add_queued(one, "resp_4", model="another")
    await one.release(["resp_1", "resp_2", "resp_3", "resp_4"])
    assert ids(await other.take_queued(["model", "third"], 2)) == ["resp_1", "resp_2"]
    assert ids(await other.take_queued(["model", "third"], 2)) == ["resp_3"]
    assert ids(await other.take_queued(["another"], 2)) == ["resp_4"]


async def test_a_server_releases_only_its_own_responses(opened: OpenStore) -> None:
    one, other = await opened(), await opened()
    await add_queued(one, "resp_1")
    await one.add_response(new_response("resp_2"))
    await other.release(["resp_1", "resp_2"])
    assert await other.take_queued(["model"], 10) == []
    assert await other.take_abandoned() == []
    await one.release(["resp_1", "resp_2"])
    assert ids(await other.take_queued(["model"], 10)) == ["resp_1"]
    assert ids(await other.take_abandoned()) == ["resp_2"]


async def test_no_response_is_taken_twice(opened: OpenStore) -> None:
    stores = [await opened() for _ in range(3)]
    expected = [f"resp_{number:02}" for number in range(20)]
    await add_queued(stores[0], *expected)
    await stores[0].release(expected)
    taken: list[str] = []
    while some := [
        each
        for each in await asyncio.gather(*(store.take_queued(["model"], 3) for store in stores))
        if each
    ]:
        taken += [response_id for each in some for response_id in ids(each)]
    assert sorted(taken) == expected


async def test_a_queued_response_without_its_request_counts_as_abandoned(opened: OpenStore) -> None:
    closing, other = await opened(), await opened()
    await closing.add_response(new_response("resp_1", status=Status.QUEUED))
    await closing.close()
    assert await other.take_queued(["model"], 10) == []
    assert ids(await other.take_abandoned()) == ["resp_1"]


async def test_a_response_is_read_and_ended_through_another_server(opened: OpenStore) -> None:
    one, other = await opened(), await opened()
    await one.add_response(new_response("resp_1", events=[b"e0"]))
    assert await other.events("resp_1", "key", after=-1) == (b"e0",)
    assert await one.ended(["resp_1"]) == set()
    assert await other.record("resp_1", progress(Status.CANCELLED), first_event=1)
    assert await one.ended(["resp_1", "resp_9"]) == {"resp_1", "resp_9"}
    assert not await one.record("resp_1", progress(), first_event=1)


async def test_the_server_that_updates_a_response_owns_it(opened: OpenStore) -> None:
    """A slow server may keep a response that another took; if it dies, that is noticed."""
    slow, eager = await opened(lease_s=SHORT_S), await opened()
    await add_queued(slow, "resp_1")
    while not await eager.take_queued(["model"], 1):
        await asyncio.sleep(0.02)
    assert await slow.record("resp_1", progress(Status.IN_PROGRESS), first_event=0)
    assert await wait_for_abandoned(eager) == ["resp_1"]


async def test_a_server_with_room_for_any_number_takes_all_queued_responses(
    opened: OpenStore,
) -> None:
    store = await opened()
    assert await store.take_queued(["model"], 2**40) == []
