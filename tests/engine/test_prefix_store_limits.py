"""Tests the size limit of the prefix store, and several servers on one directory."""

import os
import threading
import time
from pathlib import Path

import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.cache.prefix_store import open_prefix_store
from ouzel.engine.cache.record_files import RecordFiles
from ouzel.engine.core import EngineCore
from tests.engine.prefix_stores import (
    BLOCK,
    PROMPT,
    RECORD_BYTES,
    answer,
    answer_without_store,
    num_stored,
    open_engine,
    records,
    serve_once,
)


def test_of_two_servers_the_second_only_reads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_engine(tmp_path) as first:
        answer(first)
        while first.stats().num_store_written < 9:
            time.sleep(0.01)
        with open_engine(tmp_path) as second:
            assert "this engine only reads until it ends" in caplog.text
            assert answer(second) == (36, answer_without_store())
            answer(second, [80, *PROMPT])
        assert second.stats().num_store_written == 0
        answer(first, [81, *PROMPT])
    assert len(records(tmp_path)) == 18


def test_two_servers_of_different_models_keep_within_the_limit_together(tmp_path: Path) -> None:
    """Each server fills the directory while the other does."""
    limit = 40 * RECORD_BYTES
    prompts = [[number, *PROMPT] for number in range(40, 60)]  # 9 records each
    with (
        open_engine(tmp_path, max_bytes=limit) as first,
        open_engine(tmp_path, max_bytes=limit, cache_identity="other") as second,
    ):
        for prompt in prompts:
            for engine in (first, second):
                num_before = num_stored(engine)
                assert answer(engine, prompt) == (0, answer_without_store(prompt))
                while num_stored(engine) == num_before:
                    time.sleep(0.01)
    held_bytes = sum(path.stat().st_size for path in records(tmp_path))
    assert 0 < held_bytes <= limit + 2 * RECORD_BYTES


def test_a_record_that_the_other_server_let_go_is_not_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_engine(tmp_path) as first:
        answer(first)
    with open_engine(tmp_path), open_engine(tmp_path) as reading:
        for path in records(tmp_path):
            path.unlink()
        caplog.clear()
        assert answer(reading) == (0, answer_without_store())
        assert reading.stats().num_store_damaged == 0
    assert caplog.messages == []


def test_a_server_that_only_reads_takes_over_when_the_other_ends(tmp_path: Path) -> None:
    with open_engine(tmp_path) as first:
        answer(first)
        runner = FakeRunner()
        second = EngineCore(runner, store=open_prefix_store(runner, str(tmp_path), max_bytes=2**20))
    answer(second, [80, *PROMPT])
    second.close()
    with open_engine(tmp_path) as third:
        assert [answer(third, prompt)[0] for prompt in (PROMPT, [80, *PROMPT])] == [36, 36]


def test_the_least_recently_used_record_goes_first_whichever_server_used_it(tmp_path: Path) -> None:
    limit = 27 * RECORD_BYTES
    prompts = [[number, *PROMPT[:36]] for number in (70, 71, 72, 73)]
    serve_once(tmp_path, *prompts[:3], max_bytes=limit)
    serve_once(tmp_path, prompts[0], max_bytes=limit)  # used again, so the second is the oldest
    stats = serve_once(tmp_path, prompts[3], max_bytes=limit)
    assert stats.num_store_bytes == limit
    with open_engine(tmp_path, max_bytes=limit) as engine:
        assert [answer(engine, prompt)[0] for prompt in (prompts[0], prompts[2], prompts[3])] == [
            36,
            36,
            36,
        ]
        assert answer(engine, prompts[1])[0] == 0


def test_a_clock_that_was_set_back_does_not_let_the_newest_go_first(tmp_path: Path) -> None:
    serve_once(tmp_path, [80, *PROMPT])
    tomorrow_s = time.time() + 86400
    for path in records(tmp_path):
        os.utime(path, (tomorrow_s, tomorrow_s))
    serve_once(tmp_path, [81, *PROMPT])
    serve_once(tmp_path, max_bytes=9 * RECORD_BYTES)
    with open_engine(tmp_path) as engine:
        assert [answer(engine, [number, *PROMPT])[0] for number in (81, 80)] == [36, 0]


def test_a_server_starts_while_another_lets_records_go(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT)
    [directory] = (path.parent for path in records(tmp_path)[:1])
    is_over = threading.Event()

    def come_and_go() -> None:
        while not is_over.is_set():
            for number in range(100):
                (directory / f"{number:064x}.block").write_bytes(bytes(RECORD_BYTES))
            for number in range(100):
                (directory / f"{number:064x}.block").unlink(missing_ok=True)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(200):
            RecordFiles(tmp_path, "fake", {"block": 8 * BLOCK}, max_bytes=2**20).close()
    finally:
        is_over.set()
        thread.join()


def test_of_a_prompt_the_beginning_stays(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT)
    assert serve_once(tmp_path, max_bytes=5 * RECORD_BYTES).num_store_bytes == 5 * RECORD_BYTES
    with open_engine(tmp_path, max_bytes=5 * RECORD_BYTES) as engine:
        assert answer(engine) == (20, answer_without_store())


def test_a_prompt_longer_than_the_limit_is_stored_up_to_the_limit(tmp_path: Path) -> None:
    limit = 5 * RECORD_BYTES
    serve_once(tmp_path, [70, 71, 72, 73, 74], PROMPT, max_bytes=limit)
    with open_engine(tmp_path, max_bytes=limit) as engine:
        assert answer(engine) == (20, answer_without_store())


def test_records_of_other_models_make_room_unless_these_run(tmp_path: Path) -> None:
    limit = 20 * RECORD_BYTES
    serve_once(tmp_path, PROMPT, cache_identity="old")
    with open_engine(tmp_path, cache_identity="running") as other:
        answer(other)
        while other.stats().num_store_written < 9:
            time.sleep(0.01)
        serve_once(tmp_path, PROMPT, cache_identity="new", max_bytes=limit)
        assert {path.parent.name for path in records(tmp_path)} == {"new", "running"}
        assert len(records(tmp_path)) == 18
