"""Models are loaded for requests and unloaded when idle; the clock of these tests is virtual."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ouzel.errors import (
    EngineUnavailable,
    InvalidRequest,
    ModelLoadError,
    ModelNotFound,
    Overloaded,
)
from ouzel.lifecycle.models import ManagedModel
from ouzel.lifecycle.residents import Residents
from ouzel.lifecycle.states import ModelState
from ouzel.lifecycle.turns import Limits
from tests.lifecycle.movers import FakeMover, run_in_virtual_time

SIZES = {"a": 4, "b": 4, "c": 4, "d": 9, "e": 20}
TEN_BYTES = Limits(max_bytes=10)
Scenario = Callable[[Residents, FakeMover], Coroutine[Any, Any, None]]


def run(
    scenario: Scenario,
    limits: Limits = TEN_BYTES,
    *,
    keep_alive_s: float | None = 300.0,
    groups: dict[str, str] | None = None,
    max_waiting: int = 100,
) -> FakeMover:
    """Runs a scenario with models of the sizes above; afterwards no request is open."""
    mover = FakeMover(SIZES)

    async def main() -> None:
        residents = Residents(mover, limits, max_waiting=max_waiting)
        for name in SIZES:
            group = (groups or {}).get(name, "")
            residents.add(
                ManagedModel(
                    (name,), group=group, keep_alive_s=keep_alive_s, is_exclusive=bool(groups)
                )
            )
        await scenario(residents, mover)
        await residents.close()
        assert all(model.num_open == 0 for model in residents)

    run_in_virtual_time(main)
    return mover


async def ask(residents: Residents, name: str, takes_s: float = 1.0) -> None:
    async with residents.use(name):
        await asyncio.sleep(takes_s)


def state(residents: Residents, name: str) -> ModelState:
    model = residents.find(name)
    assert model is not None
    return model.state


def test_a_request_loads_its_model_once() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        await asyncio.gather(*(ask(residents, "a") for _ in range(5)))
        assert state(residents, "a") is ModelState.IDLE

    assert run(scenario).moves == ["+a"]


def test_an_idle_model_is_unloaded_after_its_keep_alive() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        await ask(residents, "a")
        await asyncio.sleep(299)
        assert state(residents, "a") is ModelState.IDLE
        await asyncio.sleep(2)
        assert state(residents, "a") is ModelState.ON_DISK

    assert run(scenario).moves == ["+a", "-a"]


def test_a_model_without_a_keep_alive_stays() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        await ask(residents, "a")
        await asyncio.sleep(10_000)

    assert run(scenario, keep_alive_s=None).moves == ["+a"]


def test_a_request_sets_the_keep_alive_until_the_unload() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        async with residents.use("a") as model:
            model.ask_keep_alive(0.0)
        await residents.settle()
        assert state(residents, "a") is ModelState.ON_DISK
        await ask(residents, "a")
        await asyncio.sleep(100)
        assert state(residents, "a") is ModelState.IDLE

    assert run(scenario).moves == ["+a", "-a", "+a"]


def test_the_least_recently_used_idle_model_makes_room() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        for name in ("a", "b", "a", "c"):
            await ask(residents, name)
        found = residents.find("b")
        assert found is not None
        assert found.num_evictions == 1

    assert run(scenario).moves == ["+a", "+b", "-b", "+c"]


def test_a_model_with_open_requests_is_not_unloaded() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        long = asyncio.create_task(ask(residents, "a", takes_s=50))
        await asyncio.sleep(2)
        await ask(residents, "d")
        assert long.done()

    assert run(scenario).moves == ["+a", "-a", "+d"]


def test_a_steady_stream_of_requests_does_not_starve_another_model() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        async def keep_asking(name: str) -> None:
            while True:
                await ask(residents, name)

        streams = [asyncio.create_task(keep_asking("a")) for _ in range(3)]
        await asyncio.sleep(5)
        begun_s = asyncio.get_running_loop().time()
        await ask(residents, "d")
        # an open request, the load and the request itself, of one second each
        assert asyncio.get_running_loop().time() - begun_s <= 3
        await asyncio.sleep(3)
        assert state(residents, "a") is ModelState.READY
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)

    assert run(scenario).moves == ["+a", "-a", "+d", "-d", "+a"]


def test_several_models_make_room_only_as_needed() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        for name in ("a", "b", "d", "a"):
            await ask(residents, name)

    assert run(scenario).moves == ["+a", "+b", "-a", "-b", "+d", "-d", "+a"]


def test_the_number_of_models_is_limited_too() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        for name in ("a", "b", "c"):
            await ask(residents, name)

    moves = run(scenario, Limits(max_loaded=2)).moves
    assert moves == ["+a", "+b", "-a", "+c"]


def test_a_model_that_never_fits_is_refused_with_the_figures() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        with pytest.raises(InvalidRequest, match="--models-memory-gib"):
            await ask(residents, "e")
        await ask(residents, "a")

    assert run(scenario).moves == ["+a"]


def test_a_failed_load_is_remembered_and_tried_again_after_a_pause() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        mover.failures["a"] = ModelLoadError("a tensor is missing")
        with pytest.raises(EngineUnavailable, match="a tensor is missing"):
            await ask(residents, "a")
        begun_s = asyncio.get_running_loop().time()
        del mover.failures["a"]
        with pytest.raises(EngineUnavailable, match="a tensor is missing") as refusal:
            await ask(residents, "a")
        assert asyncio.get_running_loop().time() == begun_s
        assert state(residents, "a") is ModelState.FAILED
        await asyncio.sleep(refusal.value.retry_after_s)
        await ask(residents, "a")

    assert run(scenario).moves == ["+a"]


def test_the_pause_behind_failures_grows() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        mover.failures["a"] = ModelLoadError("a tensor is missing")
        pauses = []
        for _ in range(10):
            with pytest.raises(EngineUnavailable) as refusal:
                await ask(residents, "a")
            pauses.append(refusal.value.retry_after_s)
            await asyncio.sleep(refusal.value.retry_after_s)
        assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]

    run(scenario)


def test_deleted_files_are_a_state_and_may_come_back() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        await ask(residents, "a")
        await residents.unload("a")
        mover.failures["a"] = ModelNotFound("its files are gone", param="model")
        with pytest.raises(ModelNotFound, match="its files are gone"):
            await ask(residents, "a")
        assert state(residents, "a") is ModelState.ABSENT
        del mover.failures["a"]
        await ask(residents, "a")

    assert run(scenario).moves == ["+a", "-a", "+a"]


def test_a_client_that_leaves_while_it_waits_frees_its_place() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        long = asyncio.create_task(ask(residents, "a", takes_s=50))
        await asyncio.sleep(2)
        leaver = asyncio.create_task(ask(residents, "d"))
        await asyncio.sleep(1)
        late = asyncio.create_task(ask(residents, "a"))
        await asyncio.sleep(1)
        assert not late.done()  # a makes room for d
        leaver.cancel()
        await asyncio.wait([late])
        assert not long.done()
        await long

    assert run(scenario).moves == ["+a"]


def test_a_load_goes_on_after_its_client_has_left() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        leaver = asyncio.create_task(ask(residents, "a"))
        await asyncio.sleep(0.5)
        leaver.cancel()
        await residents.settle()
        assert state(residents, "a") is ModelState.IDLE

    assert run(scenario).moves == ["+a"]


def test_more_waiting_requests_than_the_limit_are_refused() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        waiting = [asyncio.create_task(ask(residents, "a")) for _ in range(3)]
        await asyncio.sleep(0.5)
        with pytest.raises(Overloaded):
            await ask(residents, "b")
        await asyncio.gather(*waiting)

    run(scenario, max_waiting=3)


def test_work_in_the_engine_keeps_a_model_behind_its_request() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        mover.unfinished["a"] = asyncio.Event()
        await ask(residents, "a")
        assert state(residents, "a") is ModelState.READY
        waiting = asyncio.create_task(ask(residents, "d"))
        await asyncio.sleep(100)
        assert mover.moves == ["+a"]
        mover.unfinished.pop("a").set()
        await waiting

    assert run(scenario).moves == ["+a", "-a", "+d"]


def test_a_broken_engine_is_unloaded_and_loaded_again() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        await ask(residents, "a")
        mover.broken.add("a")
        await ask(residents, "a")

    assert run(scenario).moves == ["+a", "-a", "+a"]


def test_models_of_a_group_come_and_go_together() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        await ask(residents, "a")
        await residents.settle()
        assert mover.in_memory == {"a", "b"}
        await ask(residents, "c")

    groups = {"a": "chat", "b": "chat", "c": "speech", "d": "d", "e": "e"}
    assert run(scenario, Limits(), groups=groups).moves == ["+a", "+b", "-a", "-b", "+c"]


def test_the_permanent_group_never_makes_room() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        for name in ("a", "b", "c"):
            await ask(residents, name)
        await asyncio.sleep(1000)

    groups = {"a": "permanent", "b": "b", "c": "c", "d": "d", "e": "e"}
    assert run(scenario, Limits(), groups=groups).moves == ["+a", "+b", "-b", "+c", "-c"]


def test_closing_ends_what_waits() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        waiting = asyncio.create_task(ask(residents, "a"))
        await asyncio.sleep(0.5)
        await residents.close()
        with pytest.raises(EngineUnavailable, match="shutting down"):
            await waiting
        with pytest.raises(EngineUnavailable, match="shutting down"):
            await ask(residents, "a")

    assert run(scenario).moves == []


def test_a_forgotten_model_ends_its_waiting_requests() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        long = asyncio.create_task(ask(residents, "a", takes_s=50))
        await asyncio.sleep(2)
        waiting = asyncio.create_task(ask(residents, "d"))
        await asyncio.sleep(1)
        residents.forget("d")
        with pytest.raises(ModelNotFound, match="removed"):
            await waiting
        await long

    assert run(scenario).moves == ["+a"]


def test_an_operators_unload_waits_for_open_requests_and_holds_back_new_ones() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        long = asyncio.create_task(ask(residents, "a", takes_s=50))
        await asyncio.sleep(2)
        unloading = asyncio.create_task(residents.unload("a"))
        await asyncio.sleep(1)
        late = asyncio.create_task(ask(residents, "a"))
        await unloading
        assert long.done()
        await late

    assert run(scenario, keep_alive_s=None).moves == ["+a", "-a", "+a"]


@pytest.mark.parametrize("work", ["measure", "load"])
def test_an_unexpected_fault_ends_its_requests_and_no_other(work: str) -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        own = getattr(mover, work)

        async def fail(name: str) -> int | None:
            if name == "a":
                raise OSError("too many open files")
            done: int | None = await own(name)
            return done

        setattr(mover, work, fail)
        with pytest.raises(EngineUnavailable, match="its log says why"):
            await ask(residents, "a")
        assert state(residents, "a") is ModelState.FAILED
        await ask(residents, "b")

    assert run(scenario).moves == ["+b"]


def test_an_operators_unload_ends_when_the_model_is_removed() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        long = asyncio.create_task(ask(residents, "a", takes_s=50))
        await asyncio.sleep(2)
        unloading = asyncio.create_task(residents.unload("a"))
        await asyncio.sleep(1)
        residents.forget("a")
        await unloading
        assert not long.done()
        await long

    run(scenario)


def test_two_operators_unload_one_model_and_one_gives_up() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        long = asyncio.create_task(ask(residents, "a", takes_s=50))
        await asyncio.sleep(2)
        first, second = (asyncio.create_task(residents.unload("a")) for _ in range(2))
        await asyncio.sleep(1)
        first.cancel()
        await second
        assert long.done()
        assert state(residents, "a") is ModelState.ON_DISK

    assert run(scenario, keep_alive_s=None).moves == ["+a", "-a"]


def test_an_operators_unload_during_a_load_waits_for_it() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        asked = asyncio.create_task(ask(residents, "a"))
        await asyncio.sleep(0.5)
        await residents.unload("a")
        await asked
        assert state(residents, "a") is ModelState.ON_DISK

    assert run(scenario, keep_alive_s=None).moves == ["+a", "-a"]


def test_a_broken_engine_of_a_group_comes_back_though_the_other_models_are_busy() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        async def keep_asking(name: str) -> None:
            while True:
                await ask(residents, name)

        await ask(residents, "a")
        streams = [asyncio.create_task(keep_asking("b")) for _ in range(2)]
        await asyncio.sleep(5)
        mover.broken.add("a")
        await ask(residents, "a")
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)

    groups = {"a": "chat", "b": "chat", "c": "c", "d": "d", "e": "e"}
    assert run(scenario, Limits(), groups=groups).moves[:6] == ["+a", "+b", "-a", "-b", "+a", "+b"]


def test_files_are_measured_again_for_each_load() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        await ask(residents, "a")
        await residents.unload("a")
        mover.sizes = mover.sizes | {"a": 30}
        with pytest.raises(InvalidRequest, match="--models-memory-gib"):
            await ask(residents, "a")

    assert run(scenario).moves == ["+a", "-a"]


def test_a_model_whose_files_are_being_deleted_is_not_loaded() -> None:
    async def scenario(residents: Residents, mover: FakeMover) -> None:
        model = residents.find("a")
        assert model is not None
        with residents.blocked(model), pytest.raises(EngineUnavailable, match="being deleted"):
            await ask(residents, "a")
        await ask(residents, "a")

    assert run(scenario).moves == ["+a"]
