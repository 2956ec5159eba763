"""What is kept for the next start: a restart is another engine, with caches of its own, over the same directory."""

import logging
import os
import random
import shutil
import stat
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.cache.prefix_store import PrefixStore, open_prefix_store
from ouzel.engine.cache.record_files import RecordFiles
from ouzel.engine.core import EngineCore
from ouzel.errors import ModelLoadError
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_info import EngineStats
from ouzel.types.engine_request import EngineRequest
from tests.engine.requests import Result, Results, collect, make_request, run, run_alone
from tests.engine.test_images import CAT, picture, request

BLOCK = 4
RECORD_BYTES = 32 + 8 * BLOCK
PROMPT = [(7 * i) % 89 for i in range(37)]
STATES = {"num_kept_states": 8}


@contextmanager
def life(
    directory: Path, *, max_bytes: int = 2**20, **options: Any
) -> Iterator[EngineCore]:  # options of FakeRunner
    """Of an engine, which writes what is to be written before it ends."""
    runner = FakeRunner(**options)
    engine = EngineCore(
        runner, store=open_prefix_store(runner, str(directory), max_bytes=max_bytes)
    )
    yield engine
    engine.close()


def answer(engine: EngineCore, prompt: list[int] = PROMPT, **params: Any) -> tuple[int, list[int]]:
    """Returns how many tokens were cached, and the output."""
    [result] = run_alone(engine, make_request(prompt, **params))
    return result.final.num_cached_tokens, result.token_ids


def fresh_answer(prompt: list[int] = PROMPT, **params: Any) -> list[int]:
    return answer(EngineCore(FakeRunner(), prefix_caching=False), prompt, **params)[1]


def serve_once(
    directory: Path, *prompts: list[int], max_bytes: int = 2**20, **options: Any
) -> EngineStats:
    with life(directory, max_bytes=max_bytes, **options) as engine:
        for prompt in prompts:
            answer(engine, prompt)
    return engine.stats()


def records(directory: Path, ending: str = "*") -> list[Path]:
    return sorted(directory.glob(f"*/*.{ending}"))


def damage(path: Path, offset: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("options", [{}, STATES], ids=["blocks", "blocks and states"])
def test_the_first_request_after_a_restart_is_a_hit(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    assert serve_once(tmp_path, PROMPT, **options).num_store_written == 9 + len(options)
    with life(tmp_path, **options) as engine:
        assert answer(engine) == (36, fresh_answer())
        assert engine.stats().num_store_loaded == 9 + len(options)
        assert answer(engine) == (36, fresh_answer())
        assert engine.stats().num_store_loaded == 9 + len(options), "now they are in memory"


def test_an_answer_is_kept_once_it_is_part_of_a_prompt(tmp_path: Path) -> None:
    with life(tmp_path) as engine:
        _, token_ids = answer(engine, PROMPT[:10], max_tokens=12)
        longer = [*PROMPT[:10], *token_ids]
    with life(tmp_path) as engine:
        assert answer(engine, longer)[0] == 8
    with life(tmp_path) as engine:
        assert answer(engine, longer) == (20, fresh_answer(longer))


def test_equal_prompts_at_once_are_loaded_once(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT)
    with life(tmp_path) as engine:
        requests = [make_request(PROMPT) for _ in range(4)]
        results = run(engine, requests)
        assert [results[each.request_id, 0].final.num_cached_tokens for each in requests] == [
            36
        ] * 4
        assert engine.stats().num_store_loaded == 9


def test_another_picture_under_the_same_tokens_finds_nothing(tmp_path: Path) -> None:
    """The picture is within the third block; one that is found is not encoded again."""
    with life(tmp_path, num_encoder_parts=1) as engine:
        first = run_alone(engine, request(picture("cat", (9, 2))))[0].token_ids
    runner = FakeRunner(num_encoder_parts=1)
    engine = EngineCore(runner, store=open_prefix_store(runner, str(tmp_path), max_bytes=2**20))
    same = run_alone(engine, request(picture("cat", (9, 2))))[0]
    assert (same.final.num_cached_tokens, same.token_ids, runner.encoded) == (36, first, [])
    assert run_alone(engine, request(picture("dog", (9, 2))))[0].final.num_cached_tokens == 8
    engine.close()


def test_a_picture_whose_block_is_damaged_is_encoded(tmp_path: Path) -> None:
    with life(tmp_path, num_encoder_parts=1) as engine:
        first = run_alone(engine, request(CAT))[0].token_ids
    for path in records(tmp_path):
        damage(path)
    with life(tmp_path, num_encoder_parts=1) as engine:
        assert run_alone(engine, request(CAT))[0].token_ids == first


def test_choices_and_beams_write_their_prompt_once(tmp_path: Path) -> None:
    with life(tmp_path) as engine:
        run_alone(engine, make_request(PROMPT, n=3, temperature=1.0))
        run_alone(engine, make_request([80, *PROMPT], beam_search=BeamSearchParams(width=3)))
    assert engine.stats().num_store_written == 9 + 9


def test_another_salt_finds_nothing(tmp_path: Path) -> None:
    with life(tmp_path) as engine:
        run_alone(engine, make_request(PROMPT, cache_salt="mine"))
    with life(tmp_path) as engine:
        assert answer(engine)[0] == 0
        assert (
            run_alone(engine, make_request(PROMPT, cache_salt="mine"))[0].final.num_cached_tokens
            == 36
        )


def test_only_the_owner_may_read_what_prompts_hold(tmp_path: Path) -> None:
    directory = tmp_path / "prefixes"
    serve_once(directory, PROMPT)
    paths = [directory, *directory.rglob("*")]
    assert {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths} == {
        (True, 0o700),
        (False, 0o600),
    }


# What is not as it was written


@pytest.mark.parametrize("offset", [-1, 40, 0], ids=["last byte", "first row", "digest"])
def test_a_damaged_block_is_dropped_and_computed(
    tmp_path: Path, offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    serve_once(tmp_path, PROMPT)
    for path in records(tmp_path):
        damage(path, offset)
    with life(tmp_path) as engine:
        assert answer(engine) == (0, fresh_answer())
        assert engine.stats().num_store_damaged >= 1
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1 and "its digest is wrong" in warnings[0].getMessage()
    with life(tmp_path) as engine:
        assert answer(engine) == (36, fresh_answer()), "it was written again"


def test_what_comes_before_a_damaged_block_is_used(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT[:21])
    first = set(records(tmp_path))
    serve_once(tmp_path, PROMPT)
    for path in {*records(tmp_path)} - first:
        damage(path)
    with life(tmp_path) as engine:
        assert answer(engine) == (20, fresh_answer())


def test_a_damaged_state_is_dropped_with_what_it_was_for(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT[:21], PROMPT, **STATES)
    newest = max(records(tmp_path, "state"), key=lambda path: path.stat().st_mtime_ns)
    damage(newest)
    with life(tmp_path, **STATES) as engine:
        assert answer(engine) == (20, fresh_answer())


def test_a_file_that_was_cut_off_is_dropped_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    serve_once(tmp_path, PROMPT)
    for path in records(tmp_path):
        path.write_bytes(path.read_bytes()[:50])
    with life(tmp_path) as engine:
        assert "deleted 9 records of a wrong length" in caplog.text
        assert not records(tmp_path)
        assert answer(engine) == (0, fresh_answer())


def test_files_of_others_are_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    serve_once(tmp_path, PROMPT)
    stranger = tmp_path / "fake" / "letter.txt"
    stranger.write_text("Dear Sir,")
    (tmp_path / "fake" / ".unfinished").write_bytes(b"of a server that was killed while it wrote")
    with life(tmp_path) as engine:
        assert answer(engine) == (36, fresh_answer())
    assert stranger.exists()
    assert "ignored 1 files that are not records" in caplog.text


def test_another_model_finds_nothing_and_a_copied_record_is_no_use(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT)
    serve_once(tmp_path, [80], cache_identity="another")
    for path in records(tmp_path):
        shutil.copy(path, tmp_path / "another" / path.name)
    with life(tmp_path, cache_identity="another") as engine:
        assert answer(engine) == (0, fresh_answer())
        assert engine.stats().num_store_damaged > 0
    with life(tmp_path) as engine:
        assert answer(engine)[0] == 36


# What cannot be kept


def test_a_full_disk_fails_no_request_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with life(tmp_path) as engine:
        for number in (70, 71):
            full = tmp_path / "fake" / ".unfinished"
            full.symlink_to("/dev/full")
            prompt = [number, *PROMPT]
            assert answer(engine, prompt) == (0, fresh_answer(prompt))
            while full.is_symlink():  # until the failed write is cleared away
                time.sleep(0.01)
        answer(engine)  # there is room again
    assert not (tmp_path / "fake" / ".unfinished").exists()
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == [
        "the prefix cache directory cannot be written: [Errno 28] No space left on device"
    ]
    with life(tmp_path) as engine:
        assert answer(engine)[0] == 36


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelLoadError, match=r"prefix_cache_dir: .*file/below cannot be used"):
        open_prefix_store(FakeRunner(), str(tmp_path / "file" / "below"), max_bytes=2**20)


def test_of_two_servers_the_second_only_reads(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with life(tmp_path) as first:
        answer(first)
        while first.stats().num_store_written < 9:
            time.sleep(0.01)
        with life(tmp_path) as second:
            assert "this engine only reads until it ends" in caplog.text
            assert answer(second) == (36, fresh_answer())
            answer(second, [80, *PROMPT])
        assert second.stats().num_store_written == 0
        answer(first, [81, *PROMPT])
    assert len(records(tmp_path)) == 18


def test_two_servers_of_different_models_keep_within_the_limit_together(tmp_path: Path) -> None:
    """Each fills the directory while the other does."""
    limit = 40 * RECORD_BYTES
    prompts = [[number, *PROMPT] for number in range(40, 60)]  # 9 records each
    with (
        life(tmp_path, max_bytes=limit) as first,
        life(tmp_path, max_bytes=limit, cache_identity="other") as second,
    ):
        for prompt in prompts:
            for engine in (first, second):
                num_before = num_stored(engine)
                assert answer(engine, prompt) == (0, fresh_answer(prompt))
                while num_stored(engine) == num_before:
                    time.sleep(0.01)
    held_bytes = sum(path.stat().st_size for path in records(tmp_path))
    assert 0 < held_bytes <= limit + 2 * RECORD_BYTES


def num_stored(engine: EngineCore) -> int:
    """Counts the records that the store has written, or let go."""
    stats = engine.stats()
    return stats.num_store_written + stats.num_store_skipped


def test_a_record_that_the_other_server_let_go_is_not_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with life(tmp_path) as first:
        answer(first)
    with life(tmp_path), life(tmp_path) as reading:
        for path in records(tmp_path):
            path.unlink()
        caplog.clear()
        assert answer(reading) == (0, fresh_answer())
        assert reading.stats().num_store_damaged == 0
    assert caplog.messages == []


def test_who_only_reads_takes_over_when_the_other_ends(tmp_path: Path) -> None:
    with life(tmp_path) as first:
        answer(first)
        runner = FakeRunner()
        second = EngineCore(runner, store=open_prefix_store(runner, str(tmp_path), max_bytes=2**20))
    answer(second, [80, *PROMPT])
    second.close()
    with life(tmp_path) as third:
        assert [answer(third, prompt)[0] for prompt in (PROMPT, [80, *PROMPT])] == [36, 36]


# How much is kept


def test_what_was_used_least_recently_goes_first_whoever_used_it(tmp_path: Path) -> None:
    limit = 27 * RECORD_BYTES
    prompts = [[number, *PROMPT[:36]] for number in (70, 71, 72, 73)]
    serve_once(tmp_path, *prompts[:3], max_bytes=limit)
    serve_once(tmp_path, prompts[0], max_bytes=limit)  # used again, so the second is the oldest
    stats = serve_once(tmp_path, prompts[3], max_bytes=limit)
    assert stats.num_store_bytes == limit
    with life(tmp_path, max_bytes=limit) as engine:
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
    with life(tmp_path) as engine:
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
    with life(tmp_path, max_bytes=5 * RECORD_BYTES) as engine:
        assert answer(engine) == (20, fresh_answer())


def test_a_prompt_longer_than_the_limit_is_kept_as_far_as_it_goes(tmp_path: Path) -> None:
    limit = 5 * RECORD_BYTES
    serve_once(tmp_path, [70, 71, 72, 73, 74], PROMPT, max_bytes=limit)
    with life(tmp_path, max_bytes=limit) as engine:
        assert answer(engine) == (20, fresh_answer())


def test_records_of_other_models_make_room_unless_these_run(tmp_path: Path) -> None:
    limit = 20 * RECORD_BYTES
    serve_once(tmp_path, PROMPT, cache_identity="old")
    with life(tmp_path, cache_identity="running") as other:
        answer(other)
        while other.stats().num_store_written < 9:
            time.sleep(0.01)
        serve_once(tmp_path, PROMPT, cache_identity="new", max_bytes=limit)
        assert {path.parent.name for path in records(tmp_path)} == {"new", "running"}
        assert len(records(tmp_path)) == 18


# Loading beside others


@contextmanager
def slow_life(directory: Path, **options: Any) -> Iterator[EngineCore]:
    """Loads one block in a step."""
    runner = FakeRunner(**options)
    sizes = {ending: rows.row_bytes for ending, rows in runner.cache_rows.items()}
    files = RecordFiles(directory, runner.info.cache_identity, sizes, max_bytes=2**20)
    engine = EngineCore(runner, store=PrefixStore(files, runner.cache_rows, max_loaded_bytes=1))
    yield engine
    engine.close()


def test_a_long_prefix_is_loaded_over_several_steps_while_others_decode(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT)
    with slow_life(tmp_path) as engine:
        decoding, long = make_request([80, 81], max_tokens=30), make_request(PROMPT)
        engine.add(decoding)
        engine.step()
        engine.add(long)
        results: Results = defaultdict(Result)
        while engine.stats().num_store_loaded < 9:
            collect(results, engine.step())
        assert len(results[decoding.request_id, 0].token_ids) == 9
        while engine.has_unfinished():
            collect(results, engine.step())
        assert results[long.request_id, 0].final.num_cached_tokens == 36
        assert results[long.request_id, 0].token_ids == fresh_answer()


def test_aborting_while_a_prefix_is_loaded_leaves_no_block_in_use(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT)
    with slow_life(tmp_path) as engine:
        request = make_request(PROMPT)
        engine.add(request)
        for _ in range(3):
            engine.step()
        engine.abort(request.request_id)
        run(engine)
        assert engine.stats().num_used_blocks == 0
        assert answer(engine) == (36, fresh_answer())


@pytest.mark.parametrize(
    "options", [{}, {"num_kept_states": 5}], ids=["blocks", "blocks and states"]
)
@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_kept_evicted_and_damaged_answers_are_the_same(
    tmp_path: Path, seed: int, options: dict[str, Any]
) -> None:
    """Prompts that begin alike, in a tight cache, over lives of which each damages a record of the one before."""
    dice = random.Random(seed)
    trunk = [dice.randrange(90) for _ in range(40)]
    num_loaded = num_cached = 0
    for number in range(5):
        prompts = [
            [*trunk[: dice.randrange(40)], *dice.choices(range(90), k=dice.randrange(1, 12))]
            for _ in range(8)
        ]
        opened = slow_life if number % 2 else life
        with opened(tmp_path, num_blocks=16, **options) as engine:
            requests = [make_request(prompt, max_tokens=6) for prompt in prompts]
            results = run(engine, requests[:5])
            results |= run(engine, requests[5:])
            for request in requests:
                assert results[request.request_id, 0].token_ids == fresh_answer(
                    request.prompt_token_ids, max_tokens=6
                )
                num_cached += results[request.request_id, 0].final.num_cached_tokens
            assert engine.stats().num_used_blocks == 0
        num_loaded += engine.stats().num_store_loaded
        damage(dice.choice(records(tmp_path)))
    assert num_loaded and num_cached


def num_cached_after_restart(directory: Path, request: EngineRequest, **options: Any) -> int:
    with life(directory, **options) as engine:
        return run_alone(engine, request)[0].final.num_cached_tokens


def test_where_prompts_part_is_learned_over_restarts(tmp_path: Path) -> None:
    branches = [
        make_request([*PROMPT[:17], number, *range(4)], max_tokens=1) for number in (80, 81, 82)
    ]
    assert [num_cached_after_restart(tmp_path, branch, **STATES) for branch in branches] == [
        0,
        0,
        16,
    ]
