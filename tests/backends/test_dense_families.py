"""Each family's defaults for keys missing from config.json, and the settings that it refuses."""

from pathlib import Path

import pytest

from ouzel.checkpoint.context_length import read_max_positions
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError
from tests.backends.checkpoint_edits import with_config
from tests.backends.conftest import Load, read_golden
from tests.backends.forward import Driver, relative_error


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("apertus", ("hidden_act", "attention_bias")),
        ("arcee", ("hidden_act", "attention_bias", "mlp_bias")),
        ("bloom", ("layer_norm_epsilon", "apply_residual_connection_post_layernorm")),
        ("cohere", ("layer_norm_eps", "use_qk_norm", "attention_bias", "tie_word_embeddings")),
        ("cohere-norms", ("logit_scale",)),
        ("ernie4_5", ("rope_parameters",)),
        ("gemma", ("hidden_act", "attention_bias", "rms_norm_eps", "tie_word_embeddings")),
        ("glm4", ("partial_rotary_factor", "attention_bias")),
        ("gpt2", ("activation_function", "layer_norm_epsilon", "scale_attn_weights")),
        (
            "gpt-neox",
            (
                "rotary_pct",
                "rotary_emb_base",
                "hidden_act",
                "attention_bias",
                "layer_norm_eps",
                "use_parallel_residual",
            ),
        ),
        ("helium", ("rope_parameters",)),
        ("jais2", ("hidden_act", "attention_bias", "mlp_bias", "layer_norm_eps")),
        ("minicpm", ("attention_bias", "mlp_bias")),
        ("mpt", ("layer_norm_epsilon", "expansion_ratio", "no_bias", "norm_type")),
        ("nemotron", ("partial_rotary_factor", "hidden_act", "norm_eps")),
        (
            "opt",
            (
                "activation_function",
                "do_layer_norm_before",
                "enable_bias",
                "layer_norm_elementwise_affine",
                "tie_word_embeddings",
                "word_embed_proj_dim",
                "_remove_final_layer_norm",
            ),
        ),
        ("olmo", ("hidden_act", "tie_word_embeddings")),
        ("phi", ("hidden_act", "partial_rotary_factor", "layer_norm_eps", "qk_layernorm")),
        ("seed_oss", ("attention_bias", "attention_out_bias", "mlp_bias")),
        (
            "stablelm",
            ("partial_rotary_factor", "layer_norm_eps", "qk_layernorm", "use_parallel_residual"),
        ),
        ("starcoder2", ("hidden_act", "use_bias", "norm_epsilon")),
    ],
)
def test_a_missing_key_has_the_default_of_the_family(
    name: str, left_out: tuple[str, ...], tmp_path: Path, load: Load
) -> None:
    golden = read_golden(name)
    _, logits = Driver(load(with_config(tmp_path, name, left_out))).prefill(
        golden.prompt, len(golden.prompt)
    )
    assert relative_error(logits, golden.logits) < 1e-5


def test_command_r_has_its_context_in_another_key() -> None:
    config = {"model_type": "cohere", "max_position_embeddings": 8192, "model_max_length": 131072}
    assert read_max_positions(HfConfig(config)) == 131072
    assert read_max_positions(HfConfig(config | {"model_max_length": None})) == 8192
    assert read_max_positions(HfConfig(config | {"model_type": "llama"})) == 8192


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("gemma", {"hidden_act": "silu", "hidden_activation": "gelu_pytorch_tanh"}),
        ("gpt-neox", {"partial_rotary_factor": 0.25, "rotary_pct": 0.5}),
        ("phi", {"num_key_value_heads": None}),
    ],
)
def test_another_spelling_of_the_same_settings_gives_the_same_logits(
    name: str, changes: dict[str, object], tmp_path: Path, load: Load
) -> None:
    golden = read_golden(name)
    _, logits = Driver(load(with_config(tmp_path, name, (), **changes))).prefill(
        golden.prompt, len(golden.prompt)
    )
    assert relative_error(logits, golden.logits) < 1e-5


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "gpt-oss",
            {"layer_types": ["full_attention", "linear"]},
            "layer_types must be of .*, found .*linear",
        ),
        (
            "qwen2-moe",
            {"layer_types": ["full_attention", "linear", "linear"]},
            "layer_types must be of .* found .*linear",
        ),
        (
            "llama",
            {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
            "rope_parameters and rope_scaling differ",
        ),
        (
            "olmo3",
            {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
            "rope_parameters and rope_scaling differ",
        ),
        (
            "gemma",
            {"use_bidirectional_attention": True},
            "use_bidirectional_attention must be false, found true",
        ),
        (
            "gpt2",
            {"scale_attn_by_inverse_layer_idx": True},
            "scale_attn_by_inverse_layer_idx true is not supported; supported: false",
        ),
        (
            "bloom",
            {"apply_residual_connection_post_layernorm": True},
            "post_layernorm true is not supported",
        ),
        ("mpt", {"expansion_ratio": 2}, "expansion_ratio 2 is not supported; supported: only 4"),
        ("mpt", {"no_bias": False}, "no_bias false is not supported"),
        ("mpt", {"norm_type": "rmsnorm"}, "norm_type must be .* or layernorm, found rmsnorm"),
        ("mpt", {"norm_type": "x" * 5000}, "norm_type must be .* or layernorm, found x{79}…$"),
        ("mpt", {"logit_scale": "inv_sqrt_d_model"}, "logit_scale .* is not supported"),
        ("mpt", {"attn_config": {"alibi": False}}, "attn_config: alibi false is not supported"),
        ("mpt", {"attn_config": {"alibi_bias_max": 16}}, "alibi_bias_max 16 is not supported"),
        ("mpt", {"attn_config": {"qk_ln": True}}, "attn_config: qk_ln true is not supported"),
        ("mpt", {"attn_config": {"prefix_lm": True}}, "prefix_lm true is not supported"),
        ("mpt", {"attn_config": {"rope": True}}, "attn_config: rope true is not supported"),
        ("mpt", {"attn_config": {"sliding_window_size": 16}}, "sliding_window_size 16 is not"),
        ("mpt", {"attn_config": {"kv_n_heads": 1}}, "attn_config: kv_n_heads 1 is not supported"),
        ("mpt", {"attn_config": {"softmax_scale": -1}}, "softmax_scale -1 is not supported"),
        ("mpt", {"attn_config": {"softmax_scale": 0}}, "supported: numbers above 0"),
        ("mpt", {"attn_config": {"clip_qkv": -3}}, "clip_qkv -3 is not supported"),
        ("mpt", {"ffn_config": {"ffn_type": "mptglu"}}, 'ffn_type "mptglu" is not supported'),
        (
            "mpt",
            {"attn_config": {"attn_type": "multiquery_attention"}},
            'attn_type "multiquery_attention" is not supported',
        ),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention true is not supported"),
        (
            "gpt2",
            {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}},
            "quantization_config .* is not supported; supported: null",
        ),
        ("gpt2", {"n_positions": 64}, r"has the shape \[128, 32\], but .* requires \[64, 32\]"),
        (
            "opt",
            {"_remove_final_layer_norm": True},
            "tensor model.final_layer_norm.bias is in the checkpoint",
        ),
        ("opt", {"enable_bias": False}, r"tensor .*\.bias is in the checkpoint"),
        (
            "phimoe",
            {"num_experts_per_tok": 1},
            "num_experts_per_tok 1 is not supported; supported: 2",
        ),
        ("apertus", {"hidden_act": "silu"}, "hidden_act of apertus must be xielu, found silu"),
        (
            "minicpm",
            {"sparse_config": {"block_size": 64}},
            "sparse_config .* is not supported; supported: null",
        ),
        (
            "internlm3",
            {"attention_bias": False},
            "qkv_bias and bias of internlm3 must agree, found False, True",
        ),
        (
            "phi3",
            {"rope_scaling": {"type": "yarn", "factor": 2.0}},
            "rope type of phi3 must be one of .*, found yarn",
        ),
        (
            "seed_oss",
            {"partial_rotary_factor": 0.5},
            r"partial_rotary_factor 0\.5 is not supported",
        ),
        ("starcoder2", {"use_bias": False}, r"tensor .*\.bias is in the checkpoint"),
    ],
)
def test_unsupported_settings_of_a_family_are_refused(
    name: str, changes: dict[str, object], message: str, tmp_path: Path, load: Load
) -> None:
    with pytest.raises(ModelLoadError, match=message):
        load(with_config(tmp_path, name, (), **changes))
