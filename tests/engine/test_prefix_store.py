"""Tests the prefix store across restarts.

A restart is a new engine with empty caches on the same directory.
"""

import random
import stat
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ouzel.backends.fake_runner import FakeRunner
from ouzel.engine.cache.prefix_store import open_prefix_store
from ouzel.engine.core import EngineCore
from ouzel.sampling import BeamSearchParams
from ouzel.types.engine_request import EngineRequest
from tests.engine.prefix_stores import (
    PROMPT,
    STATES,
    answer,
    answer_without_store,
    damage,
    open_engine,
    open_slow_engine,
    records,
    serve_once,
)
from tests.engine.requests import Result, Results, collect, make_request, run, run_alone
from tests.engine.test_images import picture, request


@pytest.mark.parametrize("options", [{}, STATES], ids=["blocks", "blocks and states"])
def test_the_first_request_after_a_restart_is_a_hit(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    assert serve_once(tmp_path, PROMPT, **options).num_store_written == 9 + len(options)
    with open_engine(tmp_path, **options) as engine:
        assert answer(engine) == (36, answer_without_store())
        assert engine.stats().num_store_loaded == 9 + len(options)
        assert answer(engine) == (36, answer_without_store())
        assert engine.stats().num_store_loaded == 9 + len(options), "now they are in memory"


def test_an_answer_is_stored_once_it_is_part_of_a_prompt(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        _, token_ids = answer(engine, PROMPT[:10], max_tokens=12)
        longer = [*PROMPT[:10], *token_ids]
    with open_engine(tmp_path) as engine:
        assert answer(engine, longer)[0] == 8
    with open_engine(tmp_path) as engine:
        assert answer(engine, longer) == (20, answer_without_store(longer))


def test_equal_prompts_at_once_are_loaded_once(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT)
    with open_engine(tmp_path) as engine:
        requests = [make_request(PROMPT) for _ in range(4)]
        results = run(engine, requests)
        assert [results[each.request_id, 0].final.num_cached_tokens for each in requests] == [
            36
        ] * 4
        assert engine.stats().num_store_loaded == 9


def test_another_picture_under_the_same_tokens_finds_nothing(tmp_path: Path) -> None:
    """The picture is in the third block. A cached picture is not encoded again."""
    with open_engine(tmp_path, num_encoder_parts=1) as engine:
        first = run_alone(engine, request(picture("cat", (9, 2))))[0].token_ids
    runner = FakeRunner(num_encoder_parts=1)
    engine = EngineCore(runner, store=open_prefix_store(runner, str(tmp_path), max_bytes=2**20))
    same = run_alone(engine, request(picture("cat", (9, 2))))[0]
    assert (same.final.num_cached_tokens, same.token_ids, runner.encoded) == (36, first, [])
    assert run_alone(engine, request(picture("dog", (9, 2))))[0].final.num_cached_tokens == 8
    engine.close()


def test_choices_and_beams_write_their_prompt_once(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        run_alone(engine, make_request(PROMPT, n=3, temperature=1.0))
        run_alone(engine, make_request([80, *PROMPT], beam_search=BeamSearchParams(width=3)))
    assert engine.stats().num_store_written == 9 + 9


def test_another_salt_finds_nothing(tmp_path: Path) -> None:
    with open_engine(tmp_path) as engine:
        run_alone(engine, make_request(PROMPT, cache_salt="mine"))
    with open_engine(tmp_path) as engine:
        assert answer(engine)[0] == 0
        assert (
            run_alone(engine, make_request(PROMPT, cache_salt="mine"))[0].final.num_cached_tokens
            == 36
        )


def test_only_the_owner_may_read_the_records(tmp_path: Path) -> None:
    directory = tmp_path / "prefixes"
    serve_once(directory, PROMPT)
    paths = [directory, *directory.rglob("*")]
    assert {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths} == {
        (True, 0o700),
        (False, 0o600),
    }


def test_a_long_prefix_is_loaded_over_several_steps_while_others_decode(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT)
    with open_slow_engine(tmp_path) as engine:
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
        assert results[long.request_id, 0].token_ids == answer_without_store()


def test_aborting_while_a_prefix_is_loaded_leaves_no_block_in_use(tmp_path: Path) -> None:
    serve_once(tmp_path, PROMPT)
    with open_slow_engine(tmp_path) as engine:
        request = make_request(PROMPT)
        engine.add(request)
        for _ in range(3):
            engine.step()
        engine.abort(request.request_id)
        run(engine)
        assert engine.stats().num_used_blocks == 0
        assert answer(engine) == (36, answer_without_store())


@pytest.mark.parametrize(
    "options", [{}, {"num_kept_states": 5}], ids=["blocks", "blocks and states"]
)
@pytest.mark.parametrize("seed", range(6))
def test_answers_are_the_same_whichever_records_are_stored_evicted_or_damaged(
    tmp_path: Path, seed: int, options: dict[str, Any]
) -> None:
    """Prompts that begin alike use a small cache; each start damages a record of the one before."""
    dice = random.Random(seed)
    trunk = [dice.randrange(90) for _ in range(40)]
    num_loaded = num_cached = 0
    for number in range(5):
        prompts = [
            [*trunk[: dice.randrange(40)], *dice.choices(range(90), k=dice.randrange(1, 12))]
            for _ in range(8)
        ]
        opened = open_slow_engine if number % 2 else open_engine
        with opened(tmp_path, num_blocks=16, **options) as engine:
            requests = [make_request(prompt, max_tokens=6) for prompt in prompts]
            results = run(engine, requests[:5])
            results |= run(engine, requests[5:])
            for request in requests:
                assert results[request.request_id, 0].token_ids == answer_without_store(
                    request.prompt_token_ids, max_tokens=6
                )
                num_cached += results[request.request_id, 0].final.num_cached_tokens
            assert engine.stats().num_used_blocks == 0
        num_loaded += engine.stats().num_store_loaded
        damage(dice.choice(records(tmp_path)))
    assert num_loaded and num_cached


def num_cached_after_restart(directory: Path, request: EngineRequest, **options: Any) -> int:
    with open_engine(directory, **options) as engine:
        return run_alone(engine, request)[0].final.num_cached_tokens


def test_the_third_branch_of_a_prompt_is_cached_over_restarts(tmp_path: Path) -> None:
    branches = [
        make_request([*PROMPT[:17], number, *range(4)], max_tokens=1) for number in (80, 81, 82)
    ]
    assert [num_cached_after_restart(tmp_path, branch, **STATES) for branch in branches] == [
        0,
        0,
        16,
    ]
