"""Stores the prefix cache of models on disk.

After a restart, the logits equal the logits of a hit in memory, bit by bit.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, KvCacheDtype, ModelConfig, Precision
from ouzel.engine.base import StorableRunner
from ouzel.engine.cache.prefix_store import open_prefix_store
from ouzel.engine.core import EngineCore
from tests.backends import GOLDEN
from tests.engine.requests import Result, make_request, run_alone
from tests.release_only import release_only

PROMPT = [5 + (7 * i) % 83 for i in range(101)]
CACHES = [("f32", "f32"), ("f32", "u8"), ("bf16", "bf16"), ("f32", "f16")]


@contextmanager
def running_engine(
    name: str,
    cache_dir: Path,
    directory: Path,
    precision: Precision = "f32",
    kv_cache_dtype: KvCacheDtype = "auto",
) -> Iterator[EngineCore]:
    config = EngineConfig(
        kv_cache_gib=0.01, max_num_seqs=4, precision=precision, kv_cache_dtype=kv_cache_dtype
    )
    runner = create_runner(
        ModelConfig(model=str(GOLDEN / name), weights="int8", cache_dir=str(cache_dir)), config
    )
    assert isinstance(runner, StorableRunner)
    engine = EngineCore(runner, store=open_prefix_store(runner, str(directory), max_bytes=2**30))
    yield engine
    engine.close()


def score_prompt(engine: EngineCore) -> Result:
    [result] = run_alone(engine, make_request(PROMPT, num_logprobs=20, max_tokens=6))
    return result


def check_restart(
    name: str, cache_dir: Path, directory: Path, precision: Precision, kv_cache_dtype: KvCacheDtype
) -> None:
    with running_engine(name, cache_dir, directory, precision, kv_cache_dtype) as engine:
        assert score_prompt(engine).final.num_cached_tokens == 0
        in_memory = score_prompt(engine)
        assert in_memory.final.num_cached_tokens == 96
    with running_engine(name, cache_dir, directory, precision, kv_cache_dtype) as engine:
        after_restart = score_prompt(engine)
    assert after_restart.final.num_cached_tokens == 96
    assert after_restart.logprobs == in_memory.logprobs


@pytest.mark.release("prefix store: blocks of every type")
@pytest.mark.parametrize(("precision", "kv_cache_dtype"), CACHES)
def test_blocks_of_every_type_survive_a_restart(
    precision: Precision, kv_cache_dtype: KvCacheDtype, cache_dir: Path, tmp_path: Path
) -> None:
    check_restart("qwen3", cache_dir, tmp_path, precision, kv_cache_dtype)


# The states of qwen3_5 are of both kinds: convolutions and linear attention.
@pytest.mark.parametrize(
    "name", ["qwen3_5", *release_only("prefix store: states", "lfm2", "mamba2")]
)
def test_states_survive_a_restart_with_their_blocks(
    name: str, cache_dir: Path, tmp_path: Path
) -> None:
    check_restart(name, cache_dir, tmp_path, "f32", "auto")


def test_another_precision_or_model_has_no_hits(cache_dir: Path, tmp_path: Path) -> None:
    with running_engine("qwen3", cache_dir, tmp_path) as engine:
        score_prompt(engine)
    with running_engine("qwen3", cache_dir, tmp_path, "f32", "f32") as engine:
        assert score_prompt(engine).final.num_cached_tokens == 0
    with running_engine("llama", cache_dir, tmp_path) as engine:
        assert score_prompt(engine).final.num_cached_tokens == 0
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 3
