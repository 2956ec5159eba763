"""Refuses EAGLE-3 heads of other kinds and of other models, with errors that name the fault."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ouzel.backends.openvino import create_runner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.errors import ModelLoadError
from ouzel.serve.engine_factories import openvino_engine
from tests.backends import quantize
from tests.backends.eagle_heads import HEADS, MODELS, copy_head_as_ir, load, run_entries


def copy_head(name: str, directory: Path, **config: object) -> Path:
    """Copies a head and changes its config.json; a key with None is left out."""
    copy = directory / f"copy-{len(list(directory.iterdir()))}-of-{name}"
    shutil.copytree(HEADS / name, copy)
    path = copy / "config.json"
    values = json.loads(path.read_text()) | config
    path.write_text(json.dumps({key: each for key, each in values.items() if each is not None}))
    return copy


IDS = "eagle_aux_hidden_state_layer_ids"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"num_hidden_layers": 2}, "num_hidden_layers must be 1 for an EAGLE-3 head, found 2"),
        ({"architectures": 5}, r"config\.json: architectures must be a list of names, found 5"),
        ({"architectures": ["Eagle3DeepseekV2ForCausalLM"]}, "architectures must be one of Llama"),
        ({"vocab_size": 321}, "vocab_size must be 320 as in the model, found 321"),
        ({"target_hidden_size": 96}, "target_hidden_size must be 64 as in the model, found 96"),
        ({"draft_vocab_size": 321}, "draft_vocab_size must be <= 320, found 321"),
        ({"tie_word_embeddings": True}, "tie_word_embeddings true is not supported"),
        ({IDS: [0, 1, 4]}, rf"{IDS} must name some of the 2 layers of the model"),
        ({"eagle_config": {IDS: [0, -2]}}, rf"{IDS} must name some of the 2 layers"),
        ({"eagle_config": {"use_aux_hidden_state": False}}, "use_aux_hidden_state false is not"),
        ({IDS: [0, 1, 2]}, r"tensor fc\.weight has the shape \[64, 128\], but"),
        ({"norm_output": 1}, "norm_output must be true or false, found 1"),
        ({"norm_before_fc": True}, r"tensor input_norm\.weight is missing"),
        ({"hidden_act": "tanh"}, "hidden_act"),
        (
            {"speculators_model_type": "eagle"},
            'speculators_model_type must be eagle3, found "eagle"',
        ),
        ({"use_sliding_window": True}, "use_sliding_window true is not supported"),
        ({"layer_types": ["sliding_attention"]}, "layer_types must be full_attention, found "),
        (
            {"hidden_size": 32, "target_hidden_size": 64},
            r"embed_tokens\.weight is missing: a head of hidden size 32 needs an embedding of its "
            "own beside a model of 64",
        ),
    ],
)
def test_a_head_of_another_kind_or_model_is_refused(
    config: dict[str, object], message: str, tmp_path: Path, cache_dir: Path
) -> None:
    head = copy_head("llama-specforge", tmp_path, **config)
    with pytest.raises(ModelLoadError, match=message):
        load(head, MODELS / "llama", cache_dir)


@pytest.mark.parametrize(
    "config",
    [
        {"hidden_size": 0},
        {"hidden_act": "tanh"},
        {"num_key_value_heads": 3},
        {"rope_theta": -5.0, "rope_parameters": None},
        {"rope_scaling": {"rope_type": "round"}, "rope_parameters": None},
        {"architectures": 5},
        {"norm_output": 1},
        {"tie_word_embeddings": True},
        {"vocab_size": 321},
        {"eagle_config": {"use_aux_hidden_state": False}},
        {"transformer_layer_config": {"hidden_size": 0}, "hidden_size": None},
    ],
    ids=lambda config: next(iter(config)),
)
def test_an_error_names_the_config_of_the_head(
    config: dict[str, object], tmp_path: Path, cache_dir: Path
) -> None:
    head = copy_head("llama-specforge", tmp_path, **config)
    with pytest.raises(ModelLoadError, match=r"^draft_model: config\.json: "):
        load(head, MODELS / "llama", cache_dir)


def test_the_usual_layers_need_a_model_of_three_layers(tmp_path: Path, cache_dir: Path) -> None:
    head = copy_head("llama-specforge", tmp_path, eagle_config=None)
    with pytest.raises(ModelLoadError, match=r"found the inputs of \[2, 1, -1\]"):
        load(head, MODELS / "llama", cache_dir)


WRONG_TENSORS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda tensors: tensors.pop("d2t"), "its files have no tensor d2t with their ids"),
    (
        lambda tensors: tensors.update({"d2t": ("I64", tensors["d2t"][1] + 300)}),
        "tensor d2t must lead to 128 different ids below 320",
    ),
    (
        lambda tensors: tensors.update({"d2t": ("I64", -np.arange(128))}),
        "tensor d2t must lead to 128 different ids below 320",
    ),
    (
        lambda tensors: tensors.update({"midlayer.more.weight": tensors["norm.weight"]}),
        r"tensor midlayer\.more\.weight is in the checkpoint, but an EAGLE-3 head",
    ),
    (
        lambda tensors: tensors.pop("midlayer.self_attn.k_proj.weight"),
        r"tensor midlayer\.self_attn\.k_proj\.weight is missing",
    ),
]


@pytest.mark.parametrize(("change", "message"), WRONG_TENSORS)
def test_wrong_tensors_of_a_head_are_refused(
    change: Callable[[dict[str, Any]], object], message: str, tmp_path: Path, cache_dir: Path
) -> None:
    head = copy_head("llama-specforge", tmp_path)
    tensors = quantize.load(head / "model.safetensors")
    change(tensors)
    quantize.save(head / "model.safetensors", tensors)
    with pytest.raises(ModelLoadError, match=message):
        load(head, MODELS / "llama", cache_dir)


def test_tensors_are_compared_even_if_the_weights_stay_in_memory(tmp_path: Path) -> None:
    cache = tmp_path / "a file"
    cache.write_text("no directory, so that no weights can be stored")
    head = copy_head("llama-specforge", tmp_path)
    load(head, MODELS / "llama", cache)
    tensors = quantize.load(head / "model.safetensors")
    more = {"midlayer.more.weight": tensors["norm.weight"]}
    quantize.save(head / "model.safetensors", tensors | more)
    with pytest.raises(ModelLoadError, match=r"tensor midlayer\.more\.weight is in the checkpoint"):
        load(head, MODELS / "llama", cache)


def test_options_for_vectors_are_refused_before_the_head_is_compressed(tmp_path: Path) -> None:
    head = copy_head("llama-specforge", tmp_path)
    model = ModelConfig(
        model=str(MODELS / "llama"),
        draft_model=str(head),
        cache_dir=str(tmp_path / "cache"),
        task="embed",
    )
    with pytest.raises(ModelLoadError, match="task embed generates no tokens"):
        create_runner(model, EngineConfig(kv_cache_gib=0.02))
    assert not (tmp_path / "cache").exists()


def test_a_family_or_graph_without_rows_of_layers_is_refused(cache_dir: Path) -> None:
    head = HEADS / "gpt-oss-speculators"
    with pytest.raises(ModelLoadError, match="supports no EAGLE-3 head for this model family"):
        load(head, MODELS / "gemma3n", cache_dir)
    ir = Path(__file__).parent / "optimum_ir" / "mistral-int8"
    with pytest.raises(ModelLoadError, match="an OpenVINO IR does not give the rows of its layers"):
        create_runner(
            ModelConfig(model=str(ir), draft_model=str(head), cache_dir=str(cache_dir)),
            EngineConfig(kv_cache_gib=0.02),
        )


def test_a_head_as_openvino_ir_is_refused(tmp_path: Path, cache_dir: Path) -> None:
    """OVMS's profile leaves such a draft out before."""
    head = copy_head_as_ir(tmp_path / "head")
    options: dict[str, object] = {
        "model": {
            "model": str(MODELS / "llama"),
            "cache_dir": str(cache_dir),
            "draft_model": str(head),
        },
        "engine": {"kv_cache_gib": 0.02},
    }
    with pytest.raises(ModelLoadError, match="is an EAGLE-3 head as OpenVINO IR, which cannot be"):
        openvino_engine(options)


def test_a_copy_of_the_models_embedding_takes_no_memory(tmp_path: Path) -> None:
    """Published heads have such copies. Another embedding is the head's own."""
    embedding = quantize.load(MODELS / "llama" / "model.safetensors")["model.embed_tokens.weight"]
    kind, values = embedding
    cache, heads = tmp_path / "cache", tmp_path / "heads"
    heads.mkdir()
    sizes, logits, identities = [], [], set()
    for own in (None, values, np.roll(values, 1, axis=0)):
        head = copy_head("llama-specforge", heads)
        if own is not None:
            tensors = quantize.load(head / "model.safetensors")
            quantize.save(
                head / "model.safetensors", tensors | {"embed_tokens.weight": (kind, own)}
            )
        runner = load(head, MODELS / "llama", cache)
        rows = np.ones((3, 64), np.float32)
        logits.append(run_entries(runner, [([0], 0, [1, 2, 3])], rows))
        identities.add(runner.info.cache_identity)
        [entry] = cache.glob(f"{head.name}-*")
        sizes.append((entry / "weights.bin").stat().st_size)
    assert sizes[0] == sizes[1] < sizes[2]
    assert len(identities) == 3, "blocks of one head are of no use to another"
    assert np.array_equal(logits[0], logits[1])
    assert not np.array_equal(logits[0], logits[2])
