"""Reads config.json and names of tensors of checkpoints with vision encoders, without computing.

Contradictions are refused, and the names of all releases of transformers are known.
"""

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ouzel.backends.openvino.checkpoint_graph import measure_checkpoint
from ouzel.backends.openvino.vision.minicpmv import ResamplerShape
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.config.weights import read_weights
from ouzel.errors import ModelLoadError
from tests.backends.checkpoint_edits import WEIGHTS, rename_tensors
from tests.backends.vision_golden import GOLDEN


def copy_with_config(name: str, directory: Path, changes: dict[str, Any]) -> Path:  # Any: JSON
    """Copies a checkpoint and changes its config.json; objects in `changes` change single keys."""
    copy = shutil.copytree(GOLDEN / name, directory / name)
    config = json.loads((copy / "config.json").read_text())
    for key, value in changes.items():
        config[key] = config[key] | value if isinstance(value, dict) else value
    (copy / "config.json").write_text(json.dumps(config))
    return copy


def measure(directory: Path) -> None:
    measure_checkpoint(directory, read_hf_config(directory), read_weights("f32"))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "smolvlm",
            {"scale_factor": 3},
            "squares by scale_factor must be a divisor of 4 patches, .* found 3",
        ),
        ("smolvlm", {"scale_factor": 0}, "scale_factor must be a positive integer, found 0"),
        (
            "idefics3",
            {"vision_config": {"num_attention_heads": 3}},
            "hidden_size 32 is no multiple of .* 3",
        ),
        (
            "idefics3",
            {"vision_config": {"image_size": [26, 24]}},
            r"image_size \[26, 24\] is not .*: squares",
        ),
        (
            "idefics3",
            {"vision_config": {"patch_size": 27}},
            "patch_size must be <= image_size 26, found 27",
        ),
        (
            "smolvlm",
            {"vision_config": {"image_size": 2**20}},
            "embedding.weight has the shape .* requires",
        ),
        (
            "internvl",
            {"downsample_ratio": 0.3},
            "downsample_ratio 0.3 is not supported; .* one over an integer",
        ),
        ("internvl", {"downsample_ratio": 0}, "downsample_ratio 0 is not supported"),
        (
            "internvl",
            {"downsample_ratio": 1e-30},
            "squares by downsample_ratio must be a divisor of 4 patches",
        ),
        (
            "internvl",
            {"vision_feature_layer": -2},
            "vision_feature_layer -2 is not supported; supported: -1",
        ),
        (
            "internvl",
            {"vision_feature_select_strategy": "full"},
            'strategy "full" is not supported',
        ),
        ("internvl", {"vision_config": {"norm_type": "none"}}, 'norm_type "none" is not supported'),
        (
            "internvl",
            {"vision_config": {"image_size": [2**20, 2**20]}},
            "position_embeddings has the shape",
        ),
        (
            "qwen3_vl",
            {"vision_config": {"deepstack_visual_indexes": [1, 3, 4]}},
            "must be fewer than the language model's num_hidden_layers 3, found 3",
        ),
        (
            "glm_ocr",
            {"vision_config": {"attention_bias": False}},
            "attention_bias false is not supported; supported: true",
        ),
        (
            "glm_ocr",
            {"vision_config": {"out_hidden_size": 32}},
            "out_hidden_size 32 is not supported; supported: hidden_size of text_config",
        ),
        (
            "glm_ocr",
            {"vision_config": {"rope_parameters": {"rope_theta": 100.0}}},
            "supported: rope_theta 10000.0",
        ),
        (
            "glm_ocr",
            {"vision_config": {"temporal_patch_size": 1}},
            "temporal_patch_size 1 is not supported; supported: only 2",
        ),
        (
            "paddleocr_vl",
            {"vision_config": {"num_attention_heads": 16}},
            "hidden_size 32 must be a multiple of four times num_attention_heads 16",
        ),
        (
            "paddleocr_vl",
            {"text_config": {"rope_parameters": {"mrope_section": [3, 3, 3]}}},
            "mrope_section must be three numbers with the sum 10",
        ),
        (
            "lfm2_vl",
            {"vision_config": {"num_patches": 24}},
            "num_patches 24 is not supported; .* squares",
        ),
        (
            "lfm2_vl",
            {"projector_use_layernorm": False},
            "tensor multi_modal_projector.layer_norm.* is in the checkpoint",
        ),
        (
            "gemma3",
            {"mm_tokens_per_image": 15},
            "mm_tokens_per_image must be the square of a divisor of 8 .* 15",
        ),
        (
            "gemma3",
            {"mm_tokens_per_image": 9},
            "mm_tokens_per_image must be the square of a divisor of 8 .* 9",
        ),
        (
            "gemma3",
            {"text_config": {"sliding_window": 15}},
            "mm_tokens_per_image must be <= sliding_window 15, found 16",
        ),
        (
            "gemma4",
            {"vision_config": {"num_key_value_heads": 1}},
            "num_key_value_heads 1 is not supported; .* 2, as",
        ),
        (
            "gemma4",
            {"vision_config": {"head_dim": 22}},
            "head_dim must be a multiple of 4, found 22",
        ),
        (
            "gemma4",
            {"vision_config": {"rope_parameters": {"rope_type": "yarn"}}},
            'rope_type "yarn" is not supported',
        ),
        (
            "gemma4",
            {"vision_config": {"position_embedding_size": 2**20}},
            "embedding_table has the shape",
        ),
        ("gemma4", {"vision_config": {"use_clipped_linears": True}}, "q_proj.input_min is missing"),
        ("minicpmv", {"version": 2.5}, "version 2.5 is not supported; supported: 2.6, 4.0, 4.5"),
        ("minicpmv", {"version": None}, "version null is not supported"),
        ("minicpmv", {"version": [2.6]}, r"version \[2.6\] is not supported; supported: 2.6"),
        ("minicpmv", {"version": 10**400}, "version must be a number, found 1000"),
        ("minicpmv", {"scale_emb": 12}, "scale_emb 12 is not supported; supported: only 1"),
        ("minicpmv", {"query_num": 4}, "resampler.query has the shape"),
        ("minicpmv", {"drop_vision_last_layer": True}, "encoder.layers.2.* is in the checkpoint"),
        (
            "minicpmv",
            {"vision_config": {"model_type": "idefics2"}},
            'model_type "idefics2" is not supported; supported: siglip, siglip_vision_model',
        ),
        ("minicpmv4_6", {"insert_layer_id": 4}, "insert_layer_id must be >= 0 and < .* 4, found 4"),
        ("minicpmv4_6", {"insert_layer_id": -1}, "insert_layer_id must be >= 0 .* found -1"),
        (
            "minicpmv4_6",
            {"downsample_mode": "8x"},
            'downsample_mode "8x" is not supported; supported: 4x, 16x',
        ),
        ("minicpmv4_6", {"merger_times": 2}, "merger_times 2 is not supported; supported: 1"),
        (
            "minicpmv4_6",
            {"merge_kernel_size": [4, 1]},
            r"merge_kernel_size \[4, 1\] is not supported; supported: \[2, 2\]",
        ),
        (
            "minicpmv4_6",
            {"vision_config": {"window_kernel_size": [3, 3]}},
            r"window_kernel_size \[3, 3\] is not supported; supported: \[2, 2\]",
        ),
        (
            "minicpmv4_6",
            {"drop_vision_last_layer": True},
            "drop_vision_last_layer true is not supported",
        ),
        (
            "gemma4-layers",
            {"text_config": {"pad_token_id": 128}},
            "pad_token_id must be .* < .* 128, found 128",
        ),
        ("paligemma", {"projection_dim": 32}, "must be the hidden_size .* 64, found 32"),
        ("paligemma", {"text_config": {"model_type": "qwen3"}}, 'model_type "qwen3" is not'),
        (
            "paligemma",
            {"text_config": {"use_bidirectional_attention": False}},
            "use_bidirectional_attention false is not supported; supported: only true",
        ),
        (
            "paligemma",
            {"vision_config": {"model_type": "siglip2_vision_model"}},
            'model_type "siglip2_vision_model" is not supported',
        ),
        (
            "paligemma2",
            {"text_config": {"attn_logit_softcapping": None}},
            "attn_logit_softcapping null is not supported; supported: numbers above 0",
        ),
    ],
)
def test_a_config_that_contradicts_itself_or_the_tensors_is_refused(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelLoadError, match=message):
        measure(copy_with_config(name, tmp_path, changes))


def test_minicpmv_needs_heads_of_128_numbers() -> None:
    config = HfConfig({"model_type": "minicpmv", "version": 4.5, "hidden_size": 192})
    with pytest.raises(ModelLoadError, match="hidden_size must be a multiple of 128, found 192"):
        ResamplerShape.read(config)


@pytest.mark.parametrize("name", ["gemma3", "internvl", "paligemma"])
@pytest.mark.parametrize(
    "names",
    [
        {"vision_tower.": "vision_tower.vision_model."},
        {
            "language_model.model.": "model.language_model.",
            "language_model.lm_head.": "lm_head.",
            "vision_tower.": "model.vision_tower.vision_model.",
            "multi_modal_projector.": "model.multi_modal_projector.",
        },
    ],
    ids=["transformers 4", "transformers 5"],
)
def test_tensors_are_found_by_their_older_and_newer_names(
    name: str, names: dict[str, str], tmp_path: Path
) -> None:
    copy = copy_with_config(name, tmp_path, {})
    for stored, other in names.items():
        rename_tensors(copy / WEIGHTS, f'"{stored}'.encode(), f'"{other}'.encode())
    measure(copy)


def test_lfm2_vl_may_tie_its_head_by_the_older_key(tmp_path: Path) -> None:
    path = copy_with_config("lfm2_vl", tmp_path, {"text_config": {"tie_word_embeddings": False}})
    config = json.loads((path / "config.json").read_text())
    del config["tie_word_embeddings"]
    for value, has_error in ((True, False), (False, True)):
        (path / "config.json").write_text(json.dumps(config | {"tie_embedding": value}))
        with pytest.raises(ModelLoadError, match="lm_head") if has_error else nullcontext():
            measure(path)
