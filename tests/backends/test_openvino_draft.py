"""Loads a model and its draft model, like `--draft-model`."""

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.speculation.proposals import Speculation
from ouzel.errors import ModelLoadError
from ouzel.serve.draft_engine import create_draft_runner
from tests.backends import GOLDEN
from tests.backends.conftest import read_golden
from tests.engine.drafting import FOR_NOTHING, FREE
from tests.engine.requests import make_request, run

ENGINE = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02)


def copy_checkpoint(name: str, directory: Path, token: str = "a") -> Path:
    """Copies a golden checkpoint, and adds a tokenizer of two tokens with `token` as the first."""
    shutil.copytree(GOLDEN / name, directory)
    tokens = {
        "model": {"type": "BPE", "vocab": {token: 0}},
        "added_tokens": [{"id": 1, "content": "<end>"}],
    }
    (directory / "tokenizer.json").write_text(json.dumps(tokens))
    return directory


def load_both(
    model: Path, draft: Path, tmp_path: Path, engine: EngineConfig = ENGINE
) -> tuple[ModelRunner, ModelRunner]:
    config = ModelConfig(
        model=str(model), draft_model=str(draft), weights="f32", cache_dir=str(tmp_path / "cache")
    )
    runner = create_runner(config, engine)
    return runner, create_draft_runner(config, engine, runner.info)


def test_a_model_drafts_for_itself(tmp_path: Path) -> None:
    """Every proposal is right, because both caches share, free and fork the same blocks."""
    golden = read_golden("qwen3")
    directory = copy_checkpoint("qwen3", tmp_path / "model")
    runner, draft = load_both(directory, directory, tmp_path)
    assert draft.info.num_blocks == runner.info.num_blocks
    engine = EngineCore(
        runner,
        speculation=Speculation(
            prompt_lookup=False, draft=draft, costs=FREE, draft_costs=FOR_NOTHING
        ),
    )
    plain = EngineCore(
        create_runner(
            ModelConfig(model=str(directory), weights="f32", cache_dir=str(tmp_path / "cache")),
            ENGINE,
        )
    )
    options: list[dict[str, Any]] = [
        {},
        {"n": 3, "temperature": 1.0, "seed": 2},
        {"num_logprobs": 1},
        {"temperature": 0.7, "top_k": 5, "seed": 8},
    ]
    requests = [make_request(golden.prompt, max_tokens=48, **each) for each in options]
    results = run(engine, requests)
    expected = run(plain, [msgspec.structs.replace(each) for each in requests])
    assert results[requests[0].request_id, 0].token_ids == golden.greedy[:48]
    for key, result in results.items():
        assert result.token_ids == expected[key].token_ids
        assert result.final.num_accepted_tokens == result.final.num_proposed_tokens > 30


def test_an_answer_is_the_same_with_drafts_of_a_draft_model_that_is_not_deterministic(
    tmp_path: Path,
) -> None:
    golden = read_golden("qwen3")
    directory = copy_checkpoint("qwen3", tmp_path / "model")
    deterministic = msgspec.structs.replace(ENGINE, deterministic=True)
    runner, draft = load_both(directory, directory, tmp_path, deterministic)
    ways: list[dict[str, Any]] = [
        {},
        {"temperature": 1.0, "seed": 4},
        {"n": 2, "temperature": 0.8, "seed": 5},
    ]
    requests = [
        make_request(golden.prompt[:length], max_tokens=20, num_logprobs=0, **way)
        for length in (1, 5)
        for way in ways
    ]
    alone = [result for each in requests for result in run(EngineCore(runner), [each]).values()]
    speculation = Speculation(prompt_lookup=False, draft=draft, costs=FREE, draft_costs=FOR_NOTHING)
    engine = EngineCore(runner, speculation=speculation)

    together = run(engine, requests)

    drafted = [together[each.request_id, index] for each in requests for index in range(each.n)]
    assert [(each.token_ids, each.logprobs) for each in drafted] == [
        (each.token_ids, each.logprobs) for each in alone
    ]
    assert engine.stats().num_accepted_tokens > 0
    assert runner.info.is_deterministic and not draft.info.is_deterministic


def test_a_draft_model_has_the_same_tokens(tmp_path: Path) -> None:
    directory = copy_checkpoint("qwen3", tmp_path / "model")
    other = copy_checkpoint("qwen3", tmp_path / "other", token="b")
    with pytest.raises(
        ModelLoadError,
        match=r"draft_model: must have the tokens of the model, but 2 of 2 differ",
    ):
        load_both(directory, other, tmp_path)


def test_a_draft_model_reads_prompts_from_left_to_right(tmp_path: Path) -> None:
    directory = copy_checkpoint("qwen3", tmp_path / "model")
    two_way = copy_checkpoint("../golden_vision/paligemma", tmp_path / "two_way")
    with pytest.raises(
        ModelLoadError, match=r"must not have tokens of a prompt that see later ones, given a pali"
    ):
        load_both(directory, two_way, tmp_path)


def test_a_draft_model_gives_tokens(tmp_path: Path) -> None:
    directory = copy_checkpoint("qwen3", tmp_path / "model")
    embedder = copy_checkpoint("../golden_sentences/qwen3-embedding", tmp_path / "embedder")
    with pytest.raises(
        ModelLoadError, match=r"draft_model: must have tokens as its output, given a qwen3"
    ):
        load_both(directory, embedder, tmp_path)


def test_a_draft_model_is_in_a_directory(tmp_path: Path) -> None:
    directory = copy_checkpoint("qwen3", tmp_path / "model")
    with pytest.raises(ModelLoadError, match=r"draft_model: .*nowhere is not a directory"):
        load_both(directory, tmp_path / "nowhere", tmp_path)


def test_a_draft_model_has_no_states(tmp_path: Path) -> None:
    directory = copy_checkpoint("qwen3", tmp_path / "model")
    hybrid = copy_checkpoint("lfm2", tmp_path / "hybrid")
    with pytest.raises(
        ModelLoadError, match=r"draft_model: must have no recurrent layers, given a lfm2"
    ):
        load_both(directory, hybrid, tmp_path)
