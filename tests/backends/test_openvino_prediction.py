"""Compares the layer that predicts further tokens with transformers' own layers.

training/golden/make_prediction.py wrote the checkpoints.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.checkpoint import list_tensors
from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ModelRunner
from ouzel.engine.core import EngineCore
from ouzel.engine.flat_batch import build_flat_batch
from ouzel.errors import ModelLoadError
from ouzel.gguf.config import make_model_config
from ouzel.gguf.file import read_gguf
from ouzel.serve.engine_factories import openvino_engine
from tests.backends import of_kinds, quantize
from tests.engine.drafting import FREE_PREDICTION
from tests.engine.requests import make_request, run_alone

PREDICTING = Path(__file__).parent / "golden_prediction"
GGUF_PREDICTING = Path(__file__).parents[1] / "gguf" / "golden_prediction"
BLOCKS = list(range(4))
# Tensors of the prediction layer in checkpoints of DeepSeek's kind, whose models have two layers.
PREDICTION_LAYER = "model.layers.2."
COPIES = ("embed_tokens.weight", "shared_head.head.weight")

NAMES = ["qwen3_5", "qwen3_5-moe", "qwen3_next", "deepseek-v3", "glm4-moe", "glm4-moe-lite"]


@pytest.fixture(
    scope="module",
    params=of_kinds("prediction layers of other families", NAMES, ["qwen3_5", "deepseek-v3"]),
)
def directory(request: pytest.FixtureRequest) -> Path:
    return PREDICTING / str(request.param)


def load(
    directory: Path, cache_dir: Path, *, weights: str = "f32", mtp: bool = True
) -> OpenVINORunner:
    runner = create_runner(
        ModelConfig(model=str(directory), cache_dir=str(cache_dir), weights=weights, mtp=mtp),
        EngineConfig(precision="f32", kv_cache_dtype="f32", kv_cache_gib=0.02),
    )
    assert isinstance(runner, OpenVINORunner)
    return runner


def run_prediction(
    runner: OpenVINORunner, begin: int, token_ids: list[int], hidden: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Runs the prediction layer on tokens from position `begin`; returns its logits."""
    assert runner.prediction is not None
    batch = build_flat_batch(
        [(BLOCKS, begin, token_ids)], np.arange(len(token_ids)), runner.info.block_size
    )
    return runner.prediction.run(replace(batch, hidden_rows=hidden)).copy()


def run_prompt(runner: ModelRunner, prompt: list[int]) -> NDArray[np.float32]:
    slots = np.array([[0, 1]], np.int32) if runner.info.num_state_slots else None
    batch = build_flat_batch([(BLOCKS, 0, prompt)], np.arange(len(prompt)), runner.info.block_size)
    return runner.run(replace(batch, state_slots=slots))


@pytest.mark.release("prediction layers: experts as one tensor, entries")
def test_logits_of_the_layer_equal_transformers(directory: Path, cache_dir: Path) -> None:
    check_layer(load(directory, cache_dir), directory)


GGUF_NAMES = ["glm4-moe", "qwen3_5", "qwen3_5-moe"]


@pytest.mark.parametrize(
    "name", of_kinds("prediction layers of other families", GGUF_NAMES, ["qwen3_5"])
)
def test_logits_of_the_layer_in_a_gguf_file_equal_transformers(name: str, tmp_path: Path) -> None:
    """The files were made by llama.cpp's own converter."""
    path = GGUF_PREDICTING / f"{name}.gguf"
    (tmp_path / "model.gguf").symlink_to(path)
    (tmp_path / "config.json").write_text(json.dumps(make_model_config(read_gguf([path]))))
    check_layer(load(tmp_path, tmp_path / "cache"), PREDICTING / name)


def check_layer(runner: OpenVINORunner, directory: Path) -> None:
    """Compares the logits of the model and of its prediction layer with the golden values."""
    assert runner.prediction is not None
    with np.load(directory / "golden.npz") as golden:
        prompt, greedy = golden["prompt"].tolist(), golden["greedy"].tolist()
        logits = run_prompt(runner, prompt)
        np.testing.assert_allclose(logits, golden["logits"], atol=2e-3)
        np.testing.assert_allclose(runner.hidden_rows, golden["hidden"], atol=2e-3)
        hidden, token_ids = runner.hidden_rows.copy(), [*prompt[1:], greedy[0]]
        first = run_prediction(runner, 0, token_ids[:25], hidden[:25])
        others = run_prediction(runner, 25, token_ids[25:], hidden[25:])
        np.testing.assert_allclose(
            np.concatenate([first, others]), golden["prediction_logits"], atol=2e-3
        )
        last = others[-1:]
        for place, token_id in enumerate(golden["drafts"].tolist()):
            np.testing.assert_allclose(last[0], golden["chained_logits"][place], atol=2e-3)
            assert int(last[0].argmax()) == token_id
            last = run_prediction(
                runner, 40 + place, [token_id], runner.prediction.hidden_rows[-1:].copy()
            )


def test_greedy_tokens_with_the_layer_equal_transformers(directory: Path, cache_dir: Path) -> None:
    runner = load(directory, cache_dir)
    with np.load(directory / "golden.npz") as golden:
        request = make_request(golden["prompt"].tolist(), max_tokens=64, ignore_eos=True)
        result = run_alone(EngineCore(runner, speculation=FREE_PREDICTION), request)[0]
        assert result.token_ids == golden["greedy"].tolist()
    assert result.final.num_proposed_tokens > 20


@pytest.mark.parametrize(
    "directory",
    of_kinds("prediction layers of other families", NAMES, ["qwen3_5"]),
    indirect=True,
)
def test_the_layer_does_not_change_the_logits_of_the_model(
    directory: Path, cache_dir: Path
) -> None:
    """With the layer the plugin normalises the rows of the head, without it the kernels do so.

    In bf16 the logits change by a hundredth: rows are in f32 between the model and its head.
    """
    logits = []
    for mtp in (False, True):
        model = ModelConfig(model=str(directory), cache_dir=str(cache_dir), mtp=mtp)
        runner = create_runner(
            model, EngineConfig(kv_cache_gib=0.02, precision="int8", kv_cache_dtype="f16")
        )
        logits.append(run_prompt(runner, list(range(40))).copy())
    np.testing.assert_allclose(logits[0], logits[1], rtol=0, atol=1e-5)


@pytest.mark.release("prediction layers: experts as one tensor, entries")
def test_experts_may_be_stored_as_one_tensor(tmp_path: Path, cache_dir: Path) -> None:
    """Published checkpoints store experts in both ways."""
    source, fused = PREDICTING / "qwen3_5-moe", tmp_path / "fused"
    shutil.copytree(source, fused)
    tensors = quantize.load(source / "model.safetensors")
    prefix = "mtp.layers.0.mlp.experts."
    experts = {name: tensors.pop(name)[1] for name in list(tensors) if name.startswith(prefix)}

    def stack(kind: str) -> NDArray[np.generic]:
        return np.stack([experts[f"{prefix}{number}.{kind}_proj.weight"] for number in range(4)])

    gate_up = np.concatenate([stack("gate"), stack("up")], axis=1)
    tensors[prefix + "gate_up_proj"] = "BF16", gate_up
    tensors[prefix + "down_proj"] = "BF16", stack("down")
    quantize.save(fused / "model.safetensors", tensors)
    first, second = (
        run_prediction(load(each, cache_dir), 0, [1, 2, 3], np.ones((3, 32), np.float32))
        for each in (source, fused)
    )
    assert np.array_equal(first, second)


def change_config(directory: Path, **config: object) -> Path:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return directory


def test_a_checkpoint_without_the_layer_is_refused(tmp_path: Path, cache_dir: Path) -> None:
    golden = Path(__file__).parent / "golden"
    with pytest.raises(
        ModelLoadError, match=r"mtp: the checkpoint has no layer that predicts further tokens"
    ):
        load(golden / "qwen3_5", cache_dir)
    with pytest.raises(ModelLoadError, match=r"mtp: Ouzel supports no layer that predicts"):
        load(golden / "qwen3", cache_dir)
    configs: list[tuple[dict[str, object], str]] = [
        ({"mtp_num_hidden_layers": 2}, "mtp_num_hidden_layers must be 1 for --mtp, found 2"),
        (
            {"mtp_use_dedicated_embeddings": True},
            "mtp_use_dedicated_embeddings must be false for --mtp, found true",
        ),
    ]
    for config, message in configs:
        copy = tmp_path / next(iter(config))
        shutil.copytree(PREDICTING / "qwen3_5", copy)
        with pytest.raises(ModelLoadError, match=message):
            load(change_config(copy, **config), cache_dir)
    with pytest.raises(ModelLoadError, match=r"mtp: an OpenVINO IR has no layer"):
        load(Path(__file__).parent / "optimum_ir" / "mistral-int8", cache_dir, weights="auto")


def test_an_unknown_tensor_of_the_layer_is_refused(tmp_path: Path, cache_dir: Path) -> None:
    copy = tmp_path / "more"
    shutil.copytree(PREDICTING / "qwen3_5", copy)
    tensors = quantize.load(copy / "model.safetensors")
    more = {"mtp.layers.1.mlp.up_proj.weight": tensors["mtp.norm.weight"]}
    quantize.save(copy / "model.safetensors", tensors | more)
    inspect_model(ModelConfig(model=str(copy)), EngineConfig(kv_cache_gib=0.02))  # without --mtp
    with pytest.raises(
        ModelLoadError,
        match=r"tensor mtp\.layers\.1\.mlp\.up_proj\.weight is in the checkpoint, but",
    ):
        load(copy, cache_dir)


def test_inspection_includes_the_layer(directory: Path) -> None:
    engine = EngineConfig(kv_cache_gib=0.02)
    without, inspected = (
        inspect_model(ModelConfig(model=str(directory), mtp=mtp), engine) for mtp in (False, True)
    )
    assert inspected.kv_token_bytes > without.kv_token_bytes
    assert inspected.num_parameters > without.num_parameters
    ir = Path(__file__).parent / "optimum_ir" / "mistral-int8"
    with pytest.raises(ModelLoadError, match=r"mtp: an OpenVINO IR has no layer"):
        inspect_model(ModelConfig(model=str(ir), mtp=True), engine)


@pytest.mark.release("prediction layers: experts as one tensor, entries")
def test_the_option_enables_drafts(cache_dir: Path) -> None:
    options = {
        "model": {"model": str(PREDICTING / "qwen3_5"), "cache_dir": str(cache_dir), "mtp": True},
        "engine": {"kv_cache_gib": 0.02, "prompt_lookup": False},
    }
    engine = openvino_engine(options)
    assert engine.info.has_drafts
    assert not engine.info.has_prompt_lookup
    engine.close()


def test_a_random_checkpoint_of_the_same_shape_has_the_layer(directory: Path) -> None:
    """`list_tensors` names the preferred form of experts, and no copies of embedding and head."""
    shapes = {
        name: values.shape
        for name, (_, values) in quantize.load(directory / "model.safetensors").items()
    }
    prefix = "mtp." if any(name.startswith("mtp.") for name in shapes) else PREDICTION_LAYER
    expected = {
        name: shape
        for name, shape in shapes.items()
        if name.startswith(prefix) and not name.endswith(COPIES)
    }
    listed = list_tensors(directory, predicts=True)
    assert {name: shape for name, shape in listed.items() if name.startswith(prefix)} == expected
    assert not any(name.startswith(prefix) for name in list_tensors(directory))


@pytest.mark.release("prediction layers: experts as one tensor, entries")
def test_a_separate_head_of_the_layer_is_refused(tmp_path: Path, cache_dir: Path) -> None:
    """Published checkpoints have copies of the model's embedding and head."""
    for ending, original in zip(
        COPIES, ("model.embed_tokens.weight", "lm_head.weight"), strict=True
    ):
        copy = tmp_path / ending
        shutil.copytree(PREDICTING / "glm4-moe-lite", copy)
        tensors = quantize.load(copy / "model.safetensors")
        name = PREDICTION_LAYER + ending
        kind, values = tensors[name]
        quantize.save(
            copy / "model.safetensors", tensors | {name: (kind, np.roll(values, 1, axis=0))}
        )
        load(copy, cache_dir, mtp=False)
        with pytest.raises(
            ModelLoadError,
            match=f"mtp: tensor {name} must be the same as {original}, which the model",
        ):
            load(copy, cache_dir)
