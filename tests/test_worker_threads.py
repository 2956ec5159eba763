"""Kinds of work in threads do not wait for each other, and stuck work is reported."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from ouzel.errors import Overloaded
from ouzel.worker_threads import PreparationThreads, WorkerThreads


def test_each_kind_of_preparation_continues_while_another_is_stuck() -> None:
    async def run() -> None:
        preparing, release = PreparationThreads(), threading.Event()
        programs = [
            asyncio.create_task(preparing.run(release.wait, 10, has_own_template=True))
            for _ in range(9)
        ]
        very_long = [asyncio.create_task(preparing.run(release.wait, 2**20)) for _ in range(9)]
        long = [asyncio.create_task(preparing.run(release.wait, 2**13)) for _ in range(9)]
        await asyncio.sleep(0)
        assert await preparing.run(threading.get_ident, 10) == threading.get_ident()
        for stuck, num_bytes, has_own_template in ((long, 2**20, False), (very_long, 2**13, True)):
            for task in stuck:
                task.cancel()
            await asyncio.wait(stuck)
            release.set()
            assert (
                await preparing.run(_name, num_bytes, has_own_template=has_own_template)
                != "MainThread"
            )
            release.clear()
        release.set()
        await asyncio.wait(programs)
        preparing.close()

    asyncio.run(run())


def test_cancelled_work_does_not_begin_and_frees_its_place() -> None:
    begun: list[int] = []

    async def run() -> None:
        threads, release = WorkerThreads("work", 1, max_waiting=2), threading.Event()

        def work(number: int) -> Callable[[], None]:
            def do() -> None:
                begun.append(number)
                release.wait()

            return do

        tasks = [asyncio.create_task(threads.run(work(number))) for number in range(3)]
        while not begun:
            await asyncio.sleep(0.001)
        with pytest.raises(Overloaded, match="too much to do with work: 2 requests already wait"):
            await threads.run(work(3))
        tasks[0].cancel()  # the task's thread is still busy
        tasks[1].cancel()
        await asyncio.wait(tasks[:2])
        last = asyncio.create_task(threads.run(work(4)))
        await asyncio.sleep(0.01)
        assert begun == [0]
        release.set()
        await tasks[2]
        await last
        threads.close()

    asyncio.run(run())
    assert begun == [0, 2, 4]


def _name() -> str:
    return threading.current_thread().name
