"""A KV cache in f16 is the default where the memory holds it; else a model gets u8."""

import logging
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ouzel.backends.openvino import create_runner, load, read_config
from ouzel.backends.openvino.cache.f16_room import f16_block_bytes, num_required
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.types.engine_info import EngineInfo
from tests.backends import GOLDEN
from tests.backends.forward import Driver, relative_error
from tests.backends.large_keys import make_checkpoint, write_tokenizer

IRS = [
    GOLDEN.parent / "optimum_ir" / "mistral-int8",
    GOLDEN.parent / "optimum_ir_vision" / "qwen2_vl-int8",
]
PROMPT = list(range(3, 100))
BLOCK_BYTES = (
    32 * 2 * 2 * (16 + 16) * 2
)  # tokens, layers, heads, channels of a key and a value, f16
CONTEXT = 256
CONTEXT_BYTES = CONTEXT // 32 * BLOCK_BYTES


@pytest.fixture
def steady(tmp_path: Path) -> Path:
    """A model that does well with each type of cache."""
    return make_checkpoint(tmp_path / "model", factor=1.0, attention=2.0)


@pytest.fixture
def huge(tmp_path: Path) -> Path:
    """The same with a pair of channels of keys that are beyond the range of f16."""
    return make_checkpoint(tmp_path / "model", factor=2.0**24, attention=2.0)


def model_config(directory: Path) -> ModelConfig:
    cache = str(directory.parent / "cache")
    return ModelConfig(model=str(directory), weights="f32", cache_dir=cache, max_model_len=CONTEXT)


def engine_with(num_bytes: int, *, max_num_seqs: int = 128) -> EngineConfig:
    return EngineConfig(precision="f32", kv_cache_gib=num_bytes / 2**30, max_num_seqs=max_num_seqs)


def info_of(directory: Path, engine: EngineConfig) -> EngineInfo:
    return create_runner(model_config(directory), engine).info


def verdicts(directory: Path) -> list[Path]:
    return [*(directory.parent / "cache").glob("*/kv_cache.json")]


@pytest.mark.release("the f16 cache: stored ranges, memory that ends")
@pytest.mark.parametrize(
    ("num_requests", "max_num_seqs", "expected"),
    [(4, 128, "f16"), (3, 128, "u8"), (2, 2, "f16"), (1, 2, "u8"), (1, 1, "f16"), (8, 4, "f16")],
)
def test_f16_is_taken_where_it_holds_four_requests_of_a_short_context(
    num_requests: int, max_num_seqs: int, expected: str, steady: Path
) -> None:
    engine = engine_with(num_requests * CONTEXT_BYTES, max_num_seqs=max_num_seqs)
    assert info_of(steady, engine).kv_cache_dtype == expected
    engine = engine_with(num_requests * CONTEXT_BYTES - 1, max_num_seqs=max_num_seqs)
    assert info_of(steady, engine).kv_cache_dtype == ("f16" if num_requests > 4 else "u8")


@pytest.mark.parametrize(
    ("max_model_len", "max_num_seqs", "expected"),
    [
        (2048, 128, 4),
        (8192, 128, 4),
        (10_923, 128, 3),
        (16_384, 128, 2),
        (32_768, 128, 1),
        (131_072, 8, 1),
        (512, 2, 2),
    ],
)
def test_longer_requests_have_to_be_fewer(
    max_model_len: int, max_num_seqs: int, expected: int
) -> None:
    assert num_required(max_model_len, max_num_seqs) == expected


def test_f16_is_taken_without_a_trial(steady: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ouzel"):
        assert info_of(steady, engine_with(5 * CONTEXT_BYTES)).kv_cache_dtype == "f16"
    assert not verdicts(steady)
    assert "KV cache: f16: 320 KiB hold 5 requests of full length" in caplog.text


def test_the_log_says_why_a_cache_is_u8(steady: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ouzel"):
        info_of(steady, engine_with(2 * CONTEXT_BYTES))
    assert "KV cache: u8, because f16 would hold 2 of 4 requests of full length" in caplog.text


def test_the_context_is_as_long_as_with_u8(steady: Path) -> None:
    """The memory holds less than one request of full length in f16."""
    info = info_of(steady, engine_with(CONTEXT_BYTES - BLOCK_BYTES))
    assert (info.kv_cache_dtype, info.max_model_len) == ("u8", CONTEXT)


def test_a_model_without_a_tokenizer_gets_f16_too(steady: Path) -> None:
    (steady / "tokenizer.json").unlink()
    assert info_of(steady, engine_with(4 * CONTEXT_BYTES)).kv_cache_dtype == "f16"


@pytest.mark.parametrize("num_requests", [12, 3])
def test_inspect_says_the_cache_that_is_served_and_why(num_requests: int, steady: Path) -> None:
    engine = engine_with(num_requests * CONTEXT_BYTES)
    found, info = inspect_model(model_config(steady), engine), info_of(steady, engine)
    assert found.kv_cache_dtype == info.kv_cache_dtype
    assert found.num_kv_tokens == info.num_blocks * info.block_size
    reasons = {
        12: "f16: 768 KiB hold 12 requests of full length",
        3: "u8, because f16 would hold 3 of 4 requests of full length",
    }
    assert found.kv_cache_reason == reasons[num_requests]


@pytest.mark.parametrize(
    "directory",
    [
        *(
            GOLDEN / name
            for name in (
                "deepseek-v3",
                "gemma3",
                "gemma4-shared",
                "granitemoehybrid",
                "qwen2-window",
            )
        ),
        *IRS,
    ],
    ids=lambda path: path.name,
)
def test_the_size_of_a_block_is_known_before_compiling(directory: Path, tmp_path: Path) -> None:
    core, config, model = (
        ov.Core(),
        read_config(directory),
        ModelConfig(model=str(directory), cache_dir=str(tmp_path)),
    )
    expected = f16_block_bytes(load(core, directory, config, model).graphs)
    runner = create_runner(model, EngineConfig(kv_cache_dtype="f16", precision="f32"), num_blocks=4)
    assert isinstance(runner, OpenVINORunner)
    assert runner.cache_rows["block"].row_bytes == expected


@pytest.mark.release("the f16 cache: stored ranges, memory that ends")
def test_the_layer_for_further_tokens_has_its_part_of_a_block(tmp_path: Path) -> None:
    directory = GOLDEN.parent / "golden_prediction" / "qwen3_5"
    model = ModelConfig(model=str(directory), cache_dir=str(tmp_path), mtp=True)
    expected = f16_block_bytes(load(ov.Core(), directory, read_config(directory), model).graphs)
    runner = create_runner(model, EngineConfig(kv_cache_dtype="f16", precision="f32"), num_blocks=4)
    assert isinstance(runner, OpenVINORunner)
    assert runner.cache_rows["block"].row_bytes == expected


@pytest.mark.release("the f16 cache: stored ranges, memory that ends")
def test_engines_that_are_told_the_same_memory_have_the_same_type(steady: Path) -> None:
    model = model_config(steady)
    engine = EngineConfig(precision="f32")
    little, much = 3 * CONTEXT_BYTES, 10**10
    assert create_runner(model, engine, free_bytes=little).info.kv_cache_dtype == "u8"
    assert create_runner(model, engine, free_bytes=much).info.kv_cache_dtype == "f16"
    assert (
        create_runner(
            model, engine, free_bytes=much, memory_share=little / much
        ).info.kv_cache_dtype
        == "u8"
    )


def test_a_fixed_number_of_blocks_is_f16_where_the_memory_holds_all(steady: Path) -> None:
    model, engine = model_config(steady), EngineConfig(precision="f32")
    assert create_runner(model, engine, num_blocks=8).info.kv_cache_dtype == "f16"
    assert (
        create_runner(model, engine, num_blocks=8, free_bytes=8 * BLOCK_BYTES).info.kv_cache_dtype
        == "u8"
    )


def test_memory_that_is_gone_before_the_cache_is_made_leaves_u8_with_the_whole_context(
    steady: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The type is chosen by `free_bytes`, and the cache gets a part of the memory that is free in the end."""
    model = msgspec.structs.replace(model_config(steady), max_model_len=4096)
    needed = 4096 // 32 * BLOCK_BYTES / 0.4
    available = int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) * 1024
    share = 0.77 * needed / available  # less than a request in f16, and more than one in u8
    info = create_runner(
        model, EngineConfig(precision="f32"), free_bytes=10**15, memory_share=share
    ).info
    assert (info.kv_cache_dtype, info.max_model_len) == ("u8", 4096)
    assert "u8 instead of f16" in caplog.text


def test_keys_beyond_the_range_of_f16_get_u8(huge: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ouzel"):
        runner = create_runner(model_config(huge), engine_with(4 * CONTEXT_BYTES))
    assert runner.info.kv_cache_dtype == "u8 with scaled keys"
    assert (
        "KV cache: u8 instead of f16: a key or value is too large for f16; the range of f16 ends at 65504"
        in caplog.text
    )
    exact = create_runner(
        model_config(huge), EngineConfig(precision="f32", kv_cache_dtype="f32"), num_blocks=16
    )
    logits = [Driver(each).prefill(PROMPT, len(PROMPT))[1] for each in (exact, runner)]
    assert relative_error(logits[1], logits[0]) < 0.1


@pytest.mark.release("the f16 cache: stored ranges, memory that ends")
def test_keys_beyond_the_range_of_f16_are_found_once(
    huge: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model, engine = model_config(huge), engine_with(4 * CONTEXT_BYTES)
    first = create_runner(model, engine).info
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="ouzel"):
        second = create_runner(model, engine).info
    assert (second.kv_cache_dtype, second.cache_identity) == (
        first.kv_cache_dtype,
        first.cache_identity,
    )
    assert "instead of f16" not in caplog.text
    assert (
        "KV cache: u8, because keys or values of this model come near the end of f16's range"
        in caplog.text
    )
    assert inspect_model(model, engine).kv_cache_dtype == first.kv_cache_dtype


@pytest.mark.release("the f16 cache: stored ranges, memory that ends")
def test_keys_beyond_the_range_of_f16_get_u8_without_a_tokenizer_too(huge: Path) -> None:
    (huge / "tokenizer.json").unlink()
    for _ in range(2):
        assert info_of(huge, engine_with(4 * CONTEXT_BYTES)).kv_cache_dtype == "u8"


@pytest.mark.release("the f16 cache: stored ranges, memory that ends")
def test_where_nothing_can_be_kept_the_range_is_read_at_each_start(huge: Path) -> None:
    (huge.parent / "cache").write_text("no directory")
    for _ in range(2):
        assert info_of(huge, engine_with(4 * CONTEXT_BYTES)).kv_cache_dtype == "u8 with scaled keys"


def test_named_f16_is_taken_with_a_line_on_its_range(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = make_checkpoint(tmp_path / "model", factor=2.0**13, attention=2.0)
    engine = msgspec.structs.replace(engine_with(4 * CONTEXT_BYTES), kv_cache_dtype="f16")
    assert info_of(directory, engine).kv_cache_dtype == "f16"
    assert "the range of f16 ends at 65504; --kv-cache-dtype u8 has no such limit" in caplog.text


@pytest.mark.release("the f16 cache: stored ranges, memory that ends")
def test_a_verdict_by_memory_comes_before_the_range(tmp_path: Path) -> None:
    """A model to which u8 does harm gets f16 where a request of full length fits, and u8 where none does."""
    sharp = make_checkpoint(tmp_path / "model", factor=256.0, attention=16.0)
    assert info_of(sharp, engine_with(2 * CONTEXT_BYTES)).kv_cache_dtype == "f16"
    assert info_of(sharp, engine_with(CONTEXT_BYTES - 1)).kv_cache_dtype == "u8 with scaled keys"


def test_logits_with_f16_are_those_with_f32(tmp_path: Path) -> None:
    directory = Path(shutil.copytree(GOLDEN / "qwen2", tmp_path / "model"))
    write_tokenizer(directory)
    engines = (
        engine_with(4 * CONTEXT_BYTES),
        EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02),
    )
    runners = [create_runner(model_config(directory), engine) for engine in engines]
    assert [runner.info.kv_cache_dtype for runner in runners] == ["f16", "f32"]
    chosen, exact = (Driver(runner).prefill(PROMPT, 32)[1] for runner in runners)
    assert np.abs(chosen - exact).max() < 0.01 * exact.std()
