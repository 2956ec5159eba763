"""Servers are killed, frozen and disturbed at every step of batches.

The store only changes when a server writes. The moments after each write therefore stand for all
kills up to the next write.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from ouzel.store.batches.records import BatchStatus
from ouzel.store.errors import StoreUnavailable
from tests.batches.running import (
    PLANS,
    BatchServer,
    cancel,
    check,
    expire,
    observing,
    read_stored_results,
    wait_for_the_ends,
)
from tests.store.watched import Moment, StoreCopies, WatchedStore

ALL_DONE = {BatchStatus.COMPLETED}
NUM_LINES = sum(plan.num_lines for plan in PLANS)
ON_POSTGRES = 5  # one of so many moments is tested there
IN_ORDINARY_RUNS = 4  # one of so many moments is tested unless `--release` is given


class Case:
    """A fresh copy of the store, and the servers that use it."""

    def __init__(self, url: str, observer: WatchedStore) -> None:
        self.observer = observer
        self._url = url

    def new_server(self) -> BatchServer:
        return BatchServer(self._url)

    async def freeze(self, server: BatchServer, moment: Moment) -> None:
        """Runs the server to a moment, or until the batches have ended."""
        is_frozen = asyncio.create_task(server.run_until(moment).wait())
        have_ended = asyncio.create_task(wait_for_the_ends(self.observer))
        await asyncio.wait({is_frozen, have_ended}, return_when=asyncio.FIRST_COMPLETED)
        is_frozen.cancel()
        have_ended.cancel()
        await asyncio.wait({is_frozen, have_ended})
        server.database.at_moment = None  # a moment that did not come must not come later
        await server.database.settle()

    async def take_over(self, dead: BatchServer, living: BatchServer) -> None:
        """Lets a server end the batches of a dead one; results that are stored must stay."""
        before = await read_stored_results(self.observer.store)
        num_begun = len(living.app.begun)
        await self.observer.end_lease(dead.watched)
        living.start()
        await wait_for_the_ends(self.observer)
        after = await read_stored_results(self.observer.store)
        assert before.items() <= after.items()
        begun = living.app.begun[num_begun:]
        assert not set(before) & set(begun), "a line with a result was run again"
        assert len(set(begun)) == len(begun), "a line was run twice"


@asynccontextmanager
async def new_case(copies: StoreCopies) -> AsyncIterator[Case]:
    url = copies.copy()
    async with observing(url) as observer:
        yield Case(url, observer)
    copies.remove(url)


async def find_moments(copies: StoreCopies, *, one_of: int = 1) -> Sequence[Moment]:
    """Runs the batches undisturbed; returns the moments after all writes, or some of them."""
    async with new_case(copies) as case:
        server = case.new_server()
        server.start()
        await wait_for_the_ends(case.observer)
        await server.stop()
        await check(case.observer.store, ALL_DONE)
    moments = [moment for moment in server.database.moments if moment.is_done]
    assert len(moments) > 30
    step = one_of * find_step(copies)
    return moments[step // 2 :: step]


def find_step(copies: StoreCopies) -> int:
    step = 1 if copies.is_thorough else IN_ORDINARY_RUNS
    return step * ON_POSTGRES if copies.is_postgres else step


async def test_kill_9_after_each_write(copies: StoreCopies) -> None:
    for moment in await find_moments(copies):
        async with new_case(copies) as case:
            first, second = case.new_server(), case.new_server()
            await case.freeze(first, moment)
            await first.kill()
            await case.take_over(first, second)
            await check(case.observer.store, ALL_DONE)
            await second.stop()


async def test_kill_9_at_each_answer(copies: StoreCopies) -> None:
    for number in range(1, NUM_LINES + 1, find_step(copies)):
        async with new_case(copies) as case:
            first, second = case.new_server(), case.new_server()
            await first.run_until_answer(number).wait()
            await first.kill()
            await case.take_over(first, second)
            await check(case.observer.store, ALL_DONE)
            await second.stop()


async def test_one_of_two_servers_is_killed(copies: StoreCopies) -> None:
    for moment in await find_moments(copies, one_of=2):
        async with new_case(copies) as case:
            first, second = case.new_server(), case.new_server()
            second.start()
            await case.freeze(first, moment)
            await first.kill()
            before = await read_stored_results(case.observer.store)
            num_begun = len(second.app.begun)
            await case.observer.end_lease(first.watched)
            await wait_for_the_ends(case.observer)
            after = await read_stored_results(case.observer.store)
            assert before.items() <= after.items()
            assert not set(before) & set(second.app.begun[num_begun:])
            await check(case.observer.store, ALL_DONE)
            await second.stop()


async def test_a_server_that_slept_through_its_lease_does_no_harm(copies: StoreCopies) -> None:
    moments = await find_moments(copies)
    random_ = random.Random(1)
    for after in moments:
        moment = Moment(after.number, is_done=random_.random() < 0.5)
        wakes_at = random_.randrange(1, 2 * moments[-1].number)
        async with new_case(copies) as case:
            sleeper, second = case.new_server(), case.new_server()
            await case.freeze(sleeper, moment)
            await case.observer.end_lease(sleeper.watched)

            async def wake(now: Moment, server: BatchServer, number: int) -> None:
                if now.number == number:
                    server.database.thaw()

            second.database.at_moment = lambda now, s=sleeper, n=wakes_at: wake(now, s, n)
            second.start()
            await wait_for_the_ends(case.observer)
            sleeper.database.thaw()
            await finish_work()
            await check(case.observer.store, ALL_DONE)
            await sleeper.stop()
            await second.stop()


async def finish_work() -> None:
    """Waits for all tasks of workers about single batches and lines."""
    names = ("work on", "line of")
    while tasks := [each for each in asyncio.all_tasks() if each.get_name().startswith(names)]:
        await asyncio.wait(tasks)


async def test_a_fault_of_the_store_only_delays_a_batch(copies: StoreCopies) -> None:
    """A fault comes after the commit: the server cannot know that its write was done."""

    async def run_with_fault(moment: Moment) -> None:
        async with limit, new_case(copies) as case:
            server = case.new_server()

            async def fail(now: Moment) -> None:
                if now == moment:
                    raise StoreUnavailable("the connection is lost", retry_after_s=1.0)

            server.database.at_moment = fail
            server.start()
            await wait_for_the_ends(case.observer)
            await check(case.observer.store, ALL_DONE)
            await server.stop()

    limit = asyncio.Semaphore(4)
    async with asyncio.TaskGroup() as group:
        for moment in await find_moments(copies):
            group.create_task(run_with_fault(moment))


async def test_cancellation_and_expiry_after_each_write(copies: StoreCopies) -> None:
    for number, moment in enumerate(await find_moments(copies)):
        action = (cancel, expire)[number % 2]
        status = BatchStatus.CANCELLED if action is cancel else BatchStatus.EXPIRED
        async with new_case(copies) as case:
            first, second = case.new_server(), case.new_server()
            await case.freeze(first, moment)
            await action(case.observer)
            if number % 4 < 2:
                first.database.thaw()
                first.worker.note_change()
                await wait_for_the_ends(case.observer)
                await first.stop()
            else:
                await first.kill()
                await case.take_over(first, second)
            await check(case.observer.store, {status, BatchStatus.COMPLETED})
            await second.stop()
