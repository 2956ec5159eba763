"""The metadata of a GGUF file become config.json; metadata that nothing reads are refused."""

import re
from pathlib import Path

import numpy as np
import pytest

from ouzel.checkpoint.model_files import JsonObject
from ouzel.errors import ModelLoadError
from ouzel.gguf.config import make_model_config
from ouzel.gguf.file import read_gguf
from ouzel.gguf.model_directory import make_small_files
from tests.gguf.writer import RawTensor, Value, make_gguf

F32 = 0
SIZES: dict[str, Value] = {
    "block_count": 2,
    "embedding_length": 64,
    "feed_forward_length": 96,
    "context_length": 512,
    "attention.head_count": 4,
    "attention.layer_norm_rms_epsilon": 1e-5,
}


DELTA: dict[str, Value] = {
    "ssm.conv_kernel": 4,
    "ssm.group_count": 2,
    "ssm.time_step_rank": 4,
    "ssm.state_size": 16,
    "ssm.inner_size": 64,
}


GEMMA4: dict[str, Value] = {
    "attention.sliding_window_pattern": [True, False],
    "attention.sliding_window": 16,
    "attention.head_count_kv": 2,
    "attention.key_length_swa": 16,
    "attention.key_length": 32,
    "attention.shared_kv_layers": 1,
}


def write_and_read(
    path: Path, architecture: str, *tensors: RawTensor, **further: Value
) -> JsonObject:
    values = {f"{architecture}.{key}": value for key, value in (SIZES | further).items()}
    embedding = RawTensor("token_embd.weight", (8, 64), F32, bytes(4 * 8 * 64))
    path.write_bytes(
        make_gguf({"general.architecture": architecture, **values}, [embedding, *tensors])
    )
    return make_model_config(read_gguf([path]))


@pytest.mark.parametrize(
    ("num_tokens", "is_read"), [(8, True), (16, True), (17, False), (100_000, False)]
)
def test_tokens_without_rows_in_the_embedding_are_refused(
    num_tokens: int, is_read: bool, tmp_path: Path
) -> None:
    path = tmp_path / "model.gguf"
    embedding = RawTensor("token_embd.weight", (8, 64), F32, bytes(4 * 8 * 64))
    metadata: dict[str, Value] = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "unknown",
        "tokenizer.ggml.tokens": [f"t{number}" for number in range(num_tokens)],
        **{f"llama.{key}": value for key, value in SIZES.items()},
    }
    path.write_bytes(make_gguf(metadata, [embedding]))

    too_many = (
        rf"must name <= 2 tokens for each of the 8 rows of token_embd.weight, found {num_tokens}$"
    )
    with pytest.raises(ModelLoadError, match="tokenizer.ggml.model" if is_read else too_many):
        make_small_files(read_gguf([path]))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def make_vector(name: str, *values: float) -> RawTensor:
    return RawTensor(name, (len(values),), F32, np.array(values, "<f4").tobytes())


def test_missing_metadata_have_defaults(path: Path) -> None:
    config = write_and_read(path, "llama")
    assert (config["head_dim"], config["num_key_value_heads"], config["vocab_size"]) == (16, 4, 8)
    assert (config["tie_word_embeddings"], config["rope_theta"], config["rope_scaling"]) == (
        True,
        10000.0,
        None,
    )


def test_biases_and_windows_show_in_the_configuration(path: Path) -> None:
    config = write_and_read(
        path, "llama", make_vector("blk.0.attn_q.bias", 1), **{"attention.sliding_window": 128}
    )
    assert (config["model_type"], config["sliding_window"], config["attention_bias"]) == (
        "mistral",
        128,
        True,
    )


def test_a_name_may_stand_for_several_models(path: Path) -> None:
    experts: dict[str, Value] = {"expert_count": 8, "expert_used_count": 2}
    window: dict[str, Value] = {
        "attention.sliding_window": 8,
        "attention.sliding_window_pattern": [1, 0],
    }
    assert write_and_read(path, "llama", **experts)["model_type"] == "mixtral"
    assert write_and_read(path, "mistral3")["model_type"] == "mistral"
    assert write_and_read(path, "olmo2")["model_type"] == "olmo2"
    ssm = DELTA | {"attention.head_count": 0, "feed_forward_length": 0}
    del ssm["ssm.group_count"]
    assert write_and_read(path, "mamba", **ssm)["model_type"] == "mamba"
    falcon = write_and_read(path, "mamba", **ssm, **{"ssm.dt_b_c_rms": True})
    assert (falcon["model_type"], falcon["intermediate_size"]) == ("falcon_mamba", 64)
    olmo3 = write_and_read(path, "olmo2", **window)
    assert (olmo3["model_type"], olmo3["layer_types"]) == (
        "olmo3",
        ["sliding_attention", "full_attention"],
    )


def test_prediction_layers_are_not_the_models(path: Path) -> None:
    config = write_and_read(path, "qwen35", **DELTA, nextn_predict_layers=1)
    assert (config["num_hidden_layers"], config["layer_types"]) == (1, ["linear_attention"])


def test_yarn_and_linear_scaling(path: Path) -> None:
    keys: dict[str, Value] = {
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 128,
    }
    yarn = write_and_read(path, "qwen3", **(keys | {"rope.scaling.type": "yarn"}))
    assert yarn["rope_scaling"] == {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 128,
    }
    linear = write_and_read(path, "qwen3", **(keys | {"rope.scaling.type": "linear"}))
    assert linear["rope_scaling"] == {"rope_type": "linear", "factor": 4.0}


def test_divisors_of_the_frequencies_become_longrope(path: Path) -> None:
    scaling = write_and_read(path, "llama", make_vector("rope_freqs.weight", *range(1, 9)))[
        "rope_scaling"
    ]
    assert isinstance(scaling, dict)
    assert (scaling["rope_type"], scaling["attention_factor"]) == ("longrope", 1.0)
    assert scaling["short_factor"] == scaling["long_factor"] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_layers_without_keys_are_convolutions(path: Path) -> None:
    keys: dict[str, Value] = {"attention.head_count_kv": [0, 2], "shortconv.l_cache": 3}
    config = write_and_read(path, "lfm2", **keys)
    assert (config["num_key_value_heads"], config["layer_types"]) == (2, ["conv", "full_attention"])


def test_missing_factors_of_minicpm_equal_the_first_models(path: Path) -> None:
    factors: dict[str, Value] = {"embedding_scale": 10.0, "residual_scale": 0.5, "logit_scale": 2.0}
    older, newer = write_and_read(path, "minicpm"), write_and_read(path, "minicpm", **factors)
    keys = ("scale_emb", "scale_depth", "dim_model_base")
    assert [older[key] for key in keys] == pytest.approx([12, 1.4, 256])
    assert [newer[key] for key in keys] == pytest.approx([10, 0.5 * 2**0.5, 32])


@pytest.mark.parametrize(("architecture", "layers_of_27b"), [("gemma2", 46), ("gemma3", 62)])
def test_gemma_has_its_scale_by_its_size(path: Path, architecture: str, layers_of_27b: int) -> None:
    keys: dict[str, Value] = {
        "attention.key_length": 32,
        "attention.value_length": 32,
        "attention.sliding_window": 16,
    }
    for num_layers, expected in ((2, 32), (layers_of_27b, 16)):
        config = write_and_read(path, architecture, **keys, block_count=num_layers)
        assert config["query_pre_attn_scalar"] == expected


def test_gemma2_has_its_soft_caps_also_without_their_keys(path: Path) -> None:
    keys: dict[str, Value] = {"attention.key_length": 32, "attention.value_length": 32}
    names = ("attn_logit_softcapping", "final_logit_softcapping")
    for caps in ({}, {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 0.0}):
        config = write_and_read(path, "gemma2", **keys, **caps)
        assert [config[name] for name in names] == ([2.0, None] if caps else [50.0, 30.0])


@pytest.mark.parametrize(
    ("architecture", "further", "message"),
    [
        (
            "jamba",
            {},
            "general.architecture jamba is not supported; nearest: mamba, mamba2, ",
        ),
        (
            "qwen3",
            {"attention.clamp_kqv": 8.0},
            "qwen3.attention.clamp_kqv is not supported for qwen3",
        ),
        ("qwen3", {"attention.causal": False}, "qwen3.attention.causal must be true, found false"),
        ("bert", {"attention.causal": True}, "bert.attention.causal must be false, found true"),
        (
            "llama",
            {"rope.scaling.type": "other"},
            "rope.scaling.type other is not supported; supported: none, linear",
        ),
        (
            "llama",
            {"attention.head_count_kv": [1, 2]},
            "attention.head_count_kv must be the same for all layers",
        ),
        (
            "llama",
            {"attention.value_length": 8},
            "attention.value_length must be 16, the length of keys, found 8",
        ),
        ("llama", {"block_count": "two"}, 'llama.block_count must be an integer, found "two"'),
        ("llama", {"block_count": 1025}, "llama.block_count must be 1 to 1024, found 1025"),
        (
            "mistral3",
            {"attention.temperature_scale": 0.1, "rope.scaling.type": "none"},
            "type must be yarn, found none",
        ),
        ("minicpm", {"logit_scale": 0.0}, "minicpm.logit_scale must not be 0"),
        ("deepseek2", {}, "deepseek2.rope.dimension_count is missing"),
        (
            "qwen35",
            DELTA | {"ssm.time_step_rank": 3},
            "must be a multiple of ssm.group_count 2, the number of key heads, found 3",
        ),
        (
            "qwen35",
            DELTA | {"ssm.state_size": 2**20},
            "must give heads of <= 262144 dimensions in total, found 64 and 1048576",
        ),
        (
            "lfm2",
            {"attention.head_count_kv": [1]},
            "lfm2.attention.head_count_kv must be a list of 2 integers",
        ),
    ],
)
def test_unsupported_metadata_are_named(
    path: Path, architecture: str, further: dict[str, Value], message: str
) -> None:
    with pytest.raises(ModelLoadError, match=re.escape(message)):
        write_and_read(path, architecture, **further)


def test_unequal_inner_sizes_of_gemma4_are_refused(path: Path) -> None:
    with pytest.raises(ModelLoadError) as refused:
        write_and_read(path, "gemma4", **GEMMA4 | {"feed_forward_length": [96, 100]})
    assert str(refused.value) == (
        f"{path}: feed_forward_length must be one number, or twice the number in the last 1 "
        "layers, found [96, 100]"
    )


def test_a_missing_number_is_named(path: Path) -> None:
    path.write_bytes(make_gguf({"general.architecture": "llama", "llama.block_count": 2}))
    with pytest.raises(ModelLoadError, match=r"llama\.embedding_length is missing"):
        make_model_config(read_gguf([path]))
