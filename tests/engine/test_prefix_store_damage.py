"""Tests the prefix store with damaged records, full disks and files of others."""

import logging
import shutil
import time
from pathlib import Path

import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.cache.prefix_store import open_prefix_store
from ouzel.errors import ModelLoadError
from tests.engine.prefix_stores import (
    PROMPT,
    STATES,
    answer,
    answer_without_store,
    damage,
    open_engine,
    records,
    serve_once,
)
from tests.engine.requests import run_alone
from tests.engine.test_images import CAT, request


def test_a_picture_whose_block_is_damaged_is_encoded(tmp_path: Path) -> None:
    with open_engine(tmp_path, num_encoder_parts=1) as engine:
        first = run_alone(engine, request(CAT))[0].token_ids
    for path in records(tmp_path):
        damage(path)
    with open_engine(tmp_path, num_encoder_parts=1) as engine:
        assert run_alone(engine, request(CAT))[0].token_ids == first


@pytest.mark.parametrize("offset", [-1, 40, 0], ids=["last byte", "first row", "digest"])
def test_a_damaged_block_is_dropped_and_computed(
    tmp_path: Path, offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    serve_once(tmp_path, PROMPT)
    for path in records(tmp_path):
        damage(path, offset)
    with open_engine(tmp_path) as engine:
        assert answer(engine) == (0, answer_without_store())
        assert engine.stats().num_store_damaged >= 1
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1 and "its digest is wrong" in warnings[0].getMessage()
    with open_engine(tmp_path) as engine:
        assert answer(engine) == (36, answer_without_store()), "it was written again"


def test_blocks_before_a_damaged_block_are_used(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT[:21])
    first = set(records(tmp_path))
    serve_once(tmp_path, PROMPT)
    for path in {*records(tmp_path)} - first:
        damage(path)
    with open_engine(tmp_path) as engine:
        assert answer(engine) == (20, answer_without_store())


def test_a_damaged_state_is_dropped_with_its_blocks(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT[:21], PROMPT, **STATES)
    newest = max(records(tmp_path, "state"), key=lambda path: path.stat().st_mtime_ns)
    damage(newest)
    with open_engine(tmp_path, **STATES) as engine:
        assert answer(engine) == (20, answer_without_store())


def test_a_file_that_was_cut_off_is_dropped_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    serve_once(tmp_path, PROMPT)
    for path in records(tmp_path):
        path.write_bytes(path.read_bytes()[:50])
    with open_engine(tmp_path) as engine:
        assert "deleted 9 records of a wrong length" in caplog.text
        assert not records(tmp_path)
        assert answer(engine) == (0, answer_without_store())


def test_files_of_others_are_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    serve_once(tmp_path, PROMPT)
    stranger = tmp_path / "fake" / "letter.txt"
    stranger.write_text("Dear Sir,")
    (tmp_path / "fake" / ".unfinished").write_bytes(b"of a server that was killed while it wrote")
    with open_engine(tmp_path) as engine:
        assert answer(engine) == (36, answer_without_store())
    assert stranger.exists()
    assert "ignored 1 files that are not records" in caplog.text


def test_another_model_finds_nothing_and_a_copied_record_is_no_use(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT)
    serve_once(tmp_path, [80], cache_identity="another")
    for path in records(tmp_path):
        shutil.copy(path, tmp_path / "another" / path.name)
    with open_engine(tmp_path, cache_identity="another") as engine:
        assert answer(engine) == (0, answer_without_store())
        assert engine.stats().num_store_damaged > 0
    with open_engine(tmp_path) as engine:
        assert answer(engine)[0] == 36


def test_a_full_disk_fails_no_request_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_engine(tmp_path) as engine:
        for number in (70, 71):
            full = tmp_path / "fake" / ".unfinished"
            full.symlink_to("/dev/full")
            prompt = [number, *PROMPT]
            assert answer(engine, prompt) == (0, answer_without_store(prompt))
            while full.is_symlink():  # until the store has removed the failed write
                time.sleep(0.01)
        answer(engine)  # there is room again
    assert not (tmp_path / "fake" / ".unfinished").exists()
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == [
        "the prefix cache directory cannot be written: [Errno 28] No space left on device"
    ]
    with open_engine(tmp_path) as engine:
        assert answer(engine)[0] == 36


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelLoadError, match=r"prefix_cache_dir: .*file/below cannot be used"):
        open_prefix_store(FakeRunner(), str(tmp_path / "file" / "below"), max_bytes=2**20)
