"""Tests adapters in the engine: loading, use, separation in the cache, unloading.

The fake runner takes a file of any content as an adapter.
"""

import threading
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.base import ForwardBatch
from ouzel.engine.cache.prefix_store import open_prefix_store
from ouzel.engine.core import EngineCore
from ouzel.engine.loop import EngineSpec, Inbox, drive_engine
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_messages import (
    AdapterEvent,
    AdapterFailed,
    AdapterLoaded,
    AdapterUnloaded,
    AddRequest,
    EngineEvent,
    LoadAdapter,
    Shutdown,
    StepResult,
    UnloadAdapter,
)
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason
from tests.engine.requests import make_request, run, run_alone, with_adapter

PROMPT = list(range(1, 14))  # three blocks of four tokens, and one more token


def take_events_at_end(engine: EngineCore) -> list[AdapterEvent]:
    while engine.has_unfinished():
        engine.step()
    return engine.adapters.take_events()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name in "abcd":
        (tmp_path / name).write_text(name)
    return tmp_path


def load_adapters(files: Path, *names: str, max_loras: int = 3) -> EngineCore:
    engine = EngineCore(FakeRunner(max_loras=max_loras))
    for name in names:
        engine.adapters.load(name, str(files / name))
    assert take_events_at_end(engine) == [AdapterLoaded(name) for name in names]
    return engine


def generate(engine: EngineCore, adapter: str, max_tokens: int = 8) -> list[int]:
    return run_alone(engine, with_adapter(make_request(PROMPT, max_tokens=max_tokens), adapter))[
        0
    ].token_ids


def test_each_row_of_a_batch_has_its_own_adapter(files: Path) -> None:
    alone = {name: generate(load_adapters(files, "a", "b"), name) for name in ("", "a", "b")}
    assert len({tuple(each) for each in alone.values()}) == 3

    engine = load_adapters(files, "a", "b")
    requests = {name: with_adapter(make_request(PROMPT), name) for name in alone}
    results = run(engine, requests.values())

    assert {
        name: results[request.request_id, 0].token_ids for name, request in requests.items()
    } == alone


def test_blocks_are_shared_under_the_same_adapter_only(files: Path) -> None:
    engine = load_adapters(files, "a", "b")

    def num_cached(adapter: str) -> int:
        return run_alone(engine, with_adapter(make_request(PROMPT), adapter))[
            0
        ].final.num_cached_tokens

    assert [num_cached(name) for name in ("", "a", "b")] == [0, 0, 0]
    assert [num_cached(name) for name in ("", "a", "b")] == [12, 12, 12]


def test_cached_blocks_belong_to_an_adapters_content_not_to_its_name(files: Path) -> None:
    engine = load_adapters(files, "a")
    expected = generate(engine, "a")
    engine.adapters.unload("a")
    engine.adapters.load("again", str(files / "a"))
    assert take_events_at_end(engine) == [AdapterUnloaded("a"), AdapterLoaded("again")]
    again = run_alone(engine, with_adapter(make_request(PROMPT), "again"))[0]
    assert (again.token_ids, again.final.num_cached_tokens) == (expected, 12)

    engine.adapters.load("a", str(files / "b"))  # another adapter with the first one's name
    take_events_at_end(engine)
    other = run_alone(engine, with_adapter(make_request(PROMPT), "a"))[0]
    assert other.final.num_cached_tokens == 0
    assert other.token_ids == generate(load_adapters(files, "b"), "b")


def test_a_prefix_directory_tells_adapters_apart(files: Path) -> None:
    def engine_on_store() -> EngineCore:
        runner = FakeRunner(max_loras=2)
        store = open_prefix_store(runner, str(files / "store"), max_bytes=2**20)
        engine = EngineCore(runner, store=store)
        for name in "ab":
            engine.adapters.load(name, str(files / name))
        take_events_at_end(engine)
        return engine

    first = engine_on_store()
    expected = generate(first, "a")
    first.close()
    second = engine_on_store()
    other = run_alone(second, with_adapter(make_request(PROMPT), "b"))[0]
    same = run_alone(second, with_adapter(make_request(PROMPT), "a"))[0]
    second.close()
    assert other.final.num_cached_tokens == 0
    assert (same.token_ids, same.final.num_cached_tokens) == (expected, 12)


def test_choices_and_beams_have_their_requests_adapter(files: Path) -> None:
    engine = load_adapters(files, "a")
    one = generate(load_adapters(files, "a"), "a")
    results = run_alone(engine, with_adapter(make_request(PROMPT, n=3), "a"))
    assert [results[index].token_ids for index in range(3)] == [one] * 3

    search = make_request(PROMPT, beam_search=BeamSearchParams(width=3))
    base = run_alone(EngineCore(FakeRunner()), search)[0].token_ids
    beams = run_alone(engine, with_adapter(search, "a"))[0].token_ids
    assert beams != base
    assert (
        beams == run_alone(load_adapters(files, "a", "b"), with_adapter(search, "a"))[0].token_ids
    )


def test_an_unknown_adapter_refuses_the_request_and_names_the_field(files: Path) -> None:
    engine = load_adapters(files, "a")
    neighbour = with_adapter(make_request(PROMPT), "a")
    wrong = with_adapter(make_request(PROMPT), "A")
    results = run(engine, [neighbour, wrong])
    final = results[wrong.request_id, 0].final
    assert final.finish_reason is FinishReason.REFUSED
    assert (final.error, final.error_param) == ("adapter 'A' is not loaded", "model")
    assert results[neighbour.request_id, 0].finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("a", "b", "adapter 'a' is already loaded: unload it first"),
        ("", "b", "an adapter must have a name"),
        ("c", "missing", "missing: No such file or directory"),
    ],
)
def test_a_load_that_fails_leaves_all_as_it_was(
    files: Path, name: str, file: str, message: str
) -> None:
    engine = load_adapters(files, "a", max_loras=2)
    expected = generate(engine, "a")
    engine.adapters.load(name, str(files / file))
    [event] = take_events_at_end(engine)
    assert isinstance(event, AdapterFailed)
    assert event.message.endswith(message)
    assert generate(engine, "a") == expected
    engine.adapters.load("b", str(files / "b"))  # its slot is free again
    assert take_events_at_end(engine) == [AdapterLoaded("b")]
    engine.adapters.load("d", str(files / "d"))
    assert take_events_at_end(engine) == [
        AdapterFailed(
            "d", "there is no room for another adapter: max_loras is 2, and as many are loaded"
        )
    ]


class _BrokenRunner(FakeRunner):
    """A runner whose reading of adapters has a fault of its own."""

    def fill_adapter_slot(self, slot: int, path: str) -> bytes:
        raise KeyError(path)


def test_a_fault_of_the_program_is_told_by_its_kind() -> None:
    """Some exceptions have no text, and the text of others does not describe them."""
    engine = EngineCore(_BrokenRunner(max_loras=1))
    engine.adapters.load("a", "b")
    assert take_events_at_end(engine) == [AdapterFailed("a", "KeyError: 'b'")]


def test_an_engine_without_room_says_so() -> None:
    engine = EngineCore(FakeRunner())
    engine.adapters.load("a", "a")
    [event] = take_events_at_end(engine)
    assert isinstance(event, AdapterFailed)
    assert "loads no adapters" in event.message


def test_requests_of_an_unloaded_adapter_go_on_to_their_ends(files: Path) -> None:
    engine = load_adapters(files, "a", max_loras=1)
    expected = generate(load_adapters(files, "a"), "a", max_tokens=20)
    request = with_adapter(make_request(PROMPT, max_tokens=20), "a")
    late = with_adapter(make_request(PROMPT), "a")

    def unload(num_steps: int) -> None:
        if num_steps == 1:
            engine.adapters.unload("a")
            engine.adapters.load("b", str(files / "b"))  # no slot is free yet
            engine.add(late)

    results = run(engine, [request], after_step=unload)

    assert results[request.request_id, 0].token_ids == expected
    assert results[request.request_id, 0].finish_reason is FinishReason.LENGTH
    assert results[late.request_id, 0].final.error == "adapter 'a' is not loaded"
    failed, unloaded = engine.adapters.take_events()
    assert isinstance(failed, AdapterFailed)
    assert "1 of them unloaded, but still in use" in failed.message
    assert unloaded == AdapterUnloaded("a")
    engine.adapters.load("b", str(files / "b"))
    assert take_events_at_end(engine) == [AdapterLoaded("b")]


def test_an_adapter_unloaded_while_it_is_loaded_never_comes(files: Path) -> None:
    engine = load_adapters(files, max_loras=1)
    engine.adapters.load("a", str(files / "a"))
    engine.adapters.unload("a")
    engine.adapters.unload("nobody")
    assert engine.adapters.take_events() == [AdapterUnloaded("nobody")]
    assert take_events_at_end(engine) == [
        AdapterFailed("a", "it was unloaded during its loading"),
        AdapterUnloaded("a"),
    ]
    assert not engine.info.adapters
    engine.adapters.load("b", str(files / "b"))
    assert take_events_at_end(engine) == [AdapterLoaded("b")]
    assert engine.info.adapters == ("b",)


def test_steps_go_on_while_an_adapter_is_read(files: Path) -> None:
    class SlowRunner(FakeRunner):
        def fill_adapter_slot(self, slot: int, path: str) -> bytes:
            may_end.wait()
            return super().fill_adapter_slot(slot, path)

    may_end = threading.Event()
    engine = EngineCore(SlowRunner(max_loras=1))
    engine.adapters.load("a", str(files / "a"))
    request = make_request(PROMPT)
    engine.add(request)
    outputs = [output for _ in range(20) for output in engine.step()]
    assert outputs[-1].finish_reason is FinishReason.LENGTH
    assert engine.adapters.take_events() == []
    may_end.set()
    assert take_events_at_end(engine) == [AdapterLoaded("a")]


def test_stats_name_the_adapters_in_use(files: Path) -> None:
    engine = EngineCore(FakeRunner(max_loras=2, max_num_seqs=1))
    for name in "ab":
        engine.adapters.load(name, str(files / name))
    take_events_at_end(engine)
    for name in "ab":
        engine.add(with_adapter(make_request(PROMPT), name))
    engine.step()
    assert (engine.stats().running_adapters, engine.stats().waiting_adapters) == (("a",), ("b",))
    run(engine)
    assert (engine.stats().running_adapters, engine.stats().waiting_adapters) == ((), ())


def engine_with_adapters(_: dict[str, object]) -> EngineCore:
    return EngineCore(FakeRunner(max_loras=1))


def test_commands_and_events_of_the_loop(files: Path) -> None:
    """An engine without requests loads and unloads adapters too."""
    inbox: Inbox = SimpleQueue()
    events: SimpleQueue[EngineEvent] = SimpleQueue()
    spec = EngineSpec(factory="tests.engine.test_adapters:engine_with_adapters", options={})
    thread = threading.Thread(target=drive_engine, args=(spec, inbox, events.put))
    thread.start()

    def answer(command: LoadAdapter | UnloadAdapter) -> AdapterEvent:
        inbox.put([command])
        while not isinstance(event := events.get(), AdapterEvent):
            pass
        return event

    assert answer(LoadAdapter("a", str(files / "a"))) == AdapterLoaded("a")
    assert isinstance(answer(LoadAdapter("b", str(files / "b"))), AdapterFailed)
    request = with_adapter(make_request(PROMPT), "a")
    assert generate_in_loop(inbox, events, request) == generate(load_adapters(files, "a"), "a")
    assert answer(UnloadAdapter("a")) == AdapterUnloaded("a")
    assert answer(LoadAdapter("b", str(files / "b"))) == AdapterLoaded("b")
    inbox.put([Shutdown()])
    thread.join()


def generate_in_loop(
    inbox: Inbox, events: "SimpleQueue[EngineEvent]", request: EngineRequest
) -> list[int]:
    inbox.put([AddRequest(request)])
    token_ids: list[int] = []
    while True:
        event = events.get()
        for output in event.outputs if isinstance(event, StepResult) else ():
            token_ids += output.token_ids
            if output.finish_reason is not None:
                return token_ids


class OverflowingRunner(FakeRunner):
    """A runner that puts a fault into the rows of an adapter whose file names the fault."""

    def __init__(self) -> None:
        super().__init__(max_loras=1)
        self.faults: dict[int, float] = {}  # keys: adapter slots

    def fill_adapter_slot(self, slot: int, path: str) -> bytes:
        self.faults[slot] = FAULTS.get(Path(path).read_text(), 0.0)
        return super().fill_adapter_slot(slot, path)

    def clear_adapter_slot(self, slot: int) -> None:
        self.faults.pop(slot, None)
        super().clear_adapter_slot(slot)

    def run(self, batch: ForwardBatch) -> NDArray[np.float32]:
        logits = super().run(batch)
        if batch.adapter_slots is not None:
            slots = batch.adapter_slots[batch.sampled_rows].tolist()
            faults = np.array([self.faults.get(slot, 0.0) for slot in slots], np.float32)
            if np.isneginf(faults).any():
                raise RuntimeError("the device has failed")
            logits += faults[:, None]
        return logits


FAULTS = {"nan": np.nan, "inf": np.inf, "error": -np.inf}


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            "nan",
            "makes the model overflow: in a trial of 4 tokens the logits of 4 tokens were "
            "infinite or not a number (NaN)",
        ),
        (
            "inf",
            "makes the model overflow: in a trial of 4 tokens the logits of 4 tokens were "
            "infinite or not a number (NaN)",
        ),
        ("error", "a trial with it failed: the device has failed"),
    ],
)
def test_an_adapter_whose_requests_would_fail_is_refused(
    files: Path, fault: str, message: str
) -> None:
    (files / fault).write_text(fault)
    engine = EngineCore(OverflowingRunner())
    engine.adapters.load("bad", str(files / fault))
    [event] = take_events_at_end(engine)
    assert isinstance(event, AdapterFailed)
    assert "adapter 'bad'" in event.message and message in event.message
    late = with_adapter(make_request(PROMPT), "bad")
    assert run_alone(engine, late)[0].final.error == "adapter 'bad' is not loaded"
    engine.adapters.load("a", str(files / "a"))  # its slot is free again
    assert take_events_at_end(engine) == [AdapterLoaded("a")]
    assert generate(engine, "a") == generate(load_adapters(files, "a"), "a")
    assert engine.stats().num_used_blocks == 0


@pytest.mark.parametrize("num_kept_states", [None, 2])
def test_a_trial_takes_blocks_of_the_prefix_cache_and_waits_for_blocks_of_sequences(
    files: Path, num_kept_states: int | None
) -> None:
    """The prefix cache holds every block at first; later one sequence holds every block."""
    engine = EngineCore(
        FakeRunner(max_loras=2, num_blocks=8, max_num_seqs=1, num_kept_states=num_kept_states)
    )
    short_prompts = [[first, 2, 3, 4] for first in range(8)]
    run(engine, [make_request(prompt, max_tokens=1) for prompt in short_prompts])
    engine.adapters.load("a", str(files / "a"))
    assert take_events_at_end(engine) == [AdapterLoaded("a")]

    holder = make_request(range(40, 70), max_tokens=3)
    engine.add(holder)
    engine.step()
    assert engine.stats().num_used_blocks == 8
    before = engine.stats()
    engine.adapters.load("b", str(files / "b"))
    outputs = []
    while not (events := engine.adapters.take_events()):
        outputs += engine.step()
        assert engine.stats().num_prefix_query_tokens == before.num_prefix_query_tokens
    assert events == [AdapterLoaded("b")]
    assert outputs[-1].finish_reason is FinishReason.LENGTH  # the sequence had to end first
    assert generate(engine, "b") == generate(load_adapters(files, "b"), "b")
