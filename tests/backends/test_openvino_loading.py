"""Loads model directories.

Errors name a broken file, key, tensor or option. The engine decides about context and cache.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.models.mistral import sliding_window
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.config import EngineConfig
from ouzel.errors import ModelLoadError
from tests.backends import GOLDEN
from tests.backends.checkpoint_edits import (
    WEIGHTS,
    add_tensor,
    change_config,
    load_copy,
    measure_error,
    rename_tensors,
    truncate,
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "llama", tmp_path / "llama"))


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "qwen3", tmp_path / "qwen3"))


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing directory": (shutil.rmtree, "is not a directory"),
    "no config.json": (lambda d: (d / "config.json").unlink(), "has no config.json"),
    "config.json without JSON": (
        lambda d: (d / "config.json").write_text('{"model_type": '),
        "config.json is not valid JSON",
    ),
    "config.json is a list": (
        lambda d: (d / "config.json").write_text("[]"),
        "must hold a JSON object",
    ),
    "unknown model_type": (
        lambda d: change_config(d, model_type="unheard"),
        "unheard is not supported; supported: .*llama, .*mistral, .*qwen2, .*qwen3",
    ),
    "a misspelled model_type": (
        lambda d: change_config(d, model_type="qwen3-moe"),
        "qwen3-moe is not supported; nearest: qwen3_moe",
    ),
    "a model_type with parts of others": (
        lambda d: change_config(d, model_type="jamba"),
        "jamba is not supported; nearest: .*granitemoehybrid.* \\(models with Mamba layers\\)",
    ),
    "a model_type that is not supported for a reason": (
        lambda d: change_config(d, model_type="deepseek_v32"),
        "deepseek_v32 is not supported: a learned indexer chooses .* nearest: .*deepseek_v3",
    ),
    "no model_type": (lambda d: change_config(d, model_type=None), "model_type is missing"),
    "missing number": (lambda d: change_config(d, hidden_size=None), "hidden_size is missing"),
    "wrong type": (
        lambda d: change_config(d, hidden_size="64"),
        'hidden_size must be an integer, found "64"',
    ),
    "heads do not divide": (
        lambda d: change_config(d, num_key_value_heads=3),
        "no multiple of num_key_value_heads 3",
    ),
    "other activation": (
        lambda d: change_config(d, hidden_act="tanh"),
        "hidden_act tanh is not supported",
    ),
    "quantised": (
        lambda d: change_config(d, quantization_config={"quant_method": "hqq", "bits": 4}),
        'quantization_config: quant_method "hqq" is not supported; supported: awq, bitsandbytes',
    ),
    "no weights": (
        lambda d: (d / WEIGHTS).unlink(),
        "has none of model.safetensors.index.json, model.safetensors, pytorch",
    ),
    "truncated weights": (lambda d: truncate(d / WEIGHTS, 100_000), "is truncated"),
    "truncated header": (lambda d: truncate(d / WEIGHTS, 200), "is truncated"),
    "empty weights": (lambda d: truncate(d / WEIGHTS, 0), "is truncated"),
    "LFS pointer": (
        lambda d: (d / WEIGHTS).write_text("version https://git-lfs"),
        "Git LFS pointer",
    ),
    "another format": (
        lambda d: (d / WEIGHTS).write_bytes(b"\x05" + b"\0" * 7 + b"hello"),
        "is not a safetensors",
    ),
    "tensors of a larger model": (
        lambda d: rename_tensors(d / WEIGHTS, b'"model.', b'"speaker.model.'),
        "tensor model.embed_tokens.weight is missing .* have speaker.model.embed_tokens.weight: "
        "the names of this checkpoint have another prefix",
    ),
    "missing tensor": (
        lambda d: change_config(d, num_hidden_layers=5),
        "model.layers.2.input_layernorm.weight is",
    ),
    "an unknown tensor": (
        lambda d: add_tensor(d / WEIGHTS, "model.note.weight"),
        "tensor model.note.weight is in the checkpoint, but a llama with this config.json has "
        "no such tensor",
    ),
    "tensors of a layer beyond the last": (
        lambda d: change_config(d, num_hidden_layers=1),
        "tensor model.layers.1.input_layernorm.weight is in the checkpoint, but a llama",
    ),
    "a head that differs from the embedding to which it is tied": (
        lambda d: change_config(d, tie_word_embeddings=True),
        "config.json ties embedding and head, but the checkpoint has a tensor lm_head.weight that "
        "is not the same",
    ),
    "wrong shape": (
        lambda d: change_config(d, intermediate_size=256),
        r"gate_proj.weight has the shape \[128, 64\], but config.json requires \[256, 64\]",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_an_error_names_the_broken_part_of_a_directory(fault: str, directory: Path) -> None:
    damage, message = BROKEN[fault]
    damage(directory)
    with pytest.raises(ModelLoadError, match=message):
        load_copy(directory)
    assert not list((directory.parent / "cache").glob("*"))  # no incomplete entry remains


@pytest.mark.parametrize(
    "name",
    [
        "mtp.layers.0.norm.weight",
        "model.mtp_emb_norm.0.weight",
        "model.layers.0.self_attn.rotary_emb.inv_freq",
    ],
)
def test_tensors_that_the_model_does_not_need_are_ignored(name: str, directory: Path) -> None:
    add_tensor(directory / WEIGHTS, name)
    assert measure_error(load_copy(directory)) < 1e-5


def test_the_language_model_of_a_checkpoint_with_several_modalities_is_loaded(
    directory: Path,
) -> None:
    """`text_config` describes the language model, and its tensors have a prefix."""
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(
        json.dumps({"model_type": "llava", "text_config": config})
    )
    rename_tensors(directory / WEIGHTS, b'"model.', b'"model.language_model.')
    rename_tensors(directory / WEIGHTS, b'"lm_head.', b'"language_model.lm_head.')
    add_tensor(directory / WEIGHTS, "model.visual.merger.weight")
    assert measure_error(load_copy(directory)) < 1e-5


def test_an_error_names_a_missing_shard(sharded: Path) -> None:
    (sharded / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(
        ModelLoadError, match=r"lacks files that .* names: model-00002-of-00002.safetensors"
    ):
        load_copy(sharded)


def test_an_error_names_a_broken_index(sharded: Path) -> None:
    (sharded / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(ModelLoadError, match=r"model.safetensors.index.json cannot be read"):
        load_copy(sharded)


OPTIONS: dict[str, tuple[EngineConfig, str]] = {
    "f32 cache in bf16": (
        EngineConfig(kv_cache_dtype="f32", precision="bf16"),
        "dtype f32 requires precision f32",
    ),
    "bf16 cache in f32": (
        EngineConfig(kv_cache_dtype="bf16", precision="f32"),
        "dtype bf16 requires precision bf16",
    ),
    "bf16 cache in int8": (
        EngineConfig(kv_cache_dtype="bf16", precision="int8"),
        "bf16 requires .*, given int8",
    ),
    "unknown device": (EngineConfig(device="TPU"), "device TPU is not available; available: .*CPU"),
    "cache too small": (
        EngineConfig(kv_cache_gib=1e-6),
        "KV cache needs at least .* kv_cache_gib is 1e-06",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_the_backend_cannot_fulfil_are_refused(name: str, directory: Path) -> None:
    engine, message = OPTIONS[name]
    with pytest.raises(ModelLoadError, match=message):
        load_copy(directory, engine)


@pytest.mark.skipif(
    "FP16" in ov.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"), reason="this CPU has f16"
)
def test_a_precision_that_the_cpu_does_not_have_is_refused(directory: Path) -> None:
    with pytest.raises(ModelLoadError, match="precision f16 is not available on CPU"):
        load_copy(directory, EngineConfig(precision="f16"))


def test_a_context_beyond_the_model_is_refused(directory: Path) -> None:
    with pytest.raises(
        ModelLoadError, match="max_model_len must be <= 40960, the model's own limit, given 50000"
    ):
        load_copy(directory, max_model_len=50_000)


def test_info_has_the_decisions_of_the_engine(directory: Path) -> None:
    info = load_copy(
        directory, EngineConfig(kv_cache_gib=0.01, max_num_seqs=4), weights="int8"
    ).info
    assert (info.model_type, info.weights) == ("llama", "int8")
    assert (info.device, info.vocab_size) == ("CPU", 320)
    assert info.precision in {"bf16", "int8", "f32"}
    assert info.num_blocks * info.block_size >= info.max_model_len
    assert info.load_s > 0


def test_auto_compresses_plain_weights_to_int8(directory: Path) -> None:
    assert load_copy(directory, weights="auto").info.weights == "int8"


def test_the_context_shrinks_to_the_tokens_of_the_cache(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    info = load_copy(
        directory, EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.001)
    ).info
    assert info.max_model_len == info.num_blocks * info.block_size < 40960
    assert f"max_model_len is {info.max_model_len} instead of 40960" in caplog.text


def test_an_explicit_context_larger_than_the_cache_is_refused(directory: Path) -> None:
    engine = EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.001)
    with pytest.raises(
        ModelLoadError,
        match=r"max_model_len must be <= \d+, the tokens of the KV cache, given 4000",
    ):
        load_copy(directory, engine, max_model_len=4000)


def test_a_cache_larger_than_the_memory_is_refused(directory: Path) -> None:
    message = r"kv_cache_gib: the system refuses 1000000\.0 GiB of memory, [\d.]+ GiB are free"
    with pytest.raises(ModelLoadError, match=message):
        load_copy(directory, EngineConfig(kv_cache_gib=1e6))


def test_the_cache_is_no_larger_than_all_contexts(directory: Path) -> None:
    info = load_copy(directory, EngineConfig(max_num_seqs=3), max_model_len=1000).info
    assert info.num_blocks == 3 * -(-1000 // info.block_size)


def test_the_cpu_plugin_fuses_rotation_and_norms(directory: Path) -> None:
    """Separate operations would be slower, and rotation by operations of the graph less exact."""
    engine = EngineConfig(kv_cache_gib=0.02, precision="f32")  # Ouzel's own kernels do not run
    runner = load_copy(directory, engine, weights="int8")
    compiled = runner._compiled  # type: ignore[attr-defined]  # there is no public access
    nodes = compiled.get_runtime_model().get_ops()
    kinds = [node.get_rt_info()["layerType"].astype(str) for node in nodes]
    assert kinds.count("RoPE") == 4  # two layers, queries and keys
    assert kinds.count("RMS") == 5
    assert kinds.count("FullyConnected") == 15
    assert kinds.count("PagedAttention") == 2


def test_mistral_has_a_sliding_window_unless_config_json_has_null() -> None:
    assert sliding_window(HfConfig({})) == 4096
    assert sliding_window(HfConfig({"sliding_window": 16})) == 16
    assert sliding_window(HfConfig({"sliding_window": None})) == 0
