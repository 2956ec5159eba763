"""Vectors and weights of tokens from an encoder, in mixed steps and rounded, and wrong heads."""

import json
import shutil
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.encoding import create_encoder_runner
from ouzel.backends.openvino.inspection import inspect_model
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import PoolingBatch
from ouzel.errors import ModelLoadError
from ouzel.pooling import VectorForm
from tests.backends.torch_archives import save_arrays

GOLDEN = Path(__file__).parent / "golden_late"
_THREE_OF_TOKENS: tuple[VectorForm, ...] = ("tokens",) * 3
TEXTS = ([0, 9, 30, 31, 2], [0, 12, 2], [0, *range(20, 40), 2])


def make_configs(
    directory: Path,
    cache_dir: Path,
    *,
    weights: str = "f32",
    precision: Literal["auto", "f32"] = "f32",
) -> tuple[ModelConfig, EngineConfig]:
    model = ModelConfig(model=str(directory), weights=weights, cache_dir=str(cache_dir))
    return model, EngineConfig(precision=precision, num_threads=1)


def make_batch(
    *forms: VectorForm, texts: tuple[list[int], ...] = TEXTS, visible: tuple[int, ...] = ()
) -> PoolingBatch:
    lens = np.array([len(text) for text in texts], np.int32)
    return PoolingBatch(
        token_ids=np.concatenate([np.array(text, np.int64) for text in texts]),
        begins=np.array([0, *np.cumsum(lens)], np.int32),
        second_begins=lens,
        tasks=np.zeros(len(texts), np.int32),
        visible_lens=np.array(visible or lens, np.int32),
        forms=forms,
    )


def find_cosines(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    cosines: NDArray[np.float32] = np.sum(one * other, axis=1) / lengths
    return cosines


def test_a_step_has_texts_of_all_forms(tmp_path: Path) -> None:
    runner = create_encoder_runner(*make_configs(GOLDEN / "bge-m3", tmp_path))
    assert runner.info.forms == ("text", "tokens", "weights")
    mixed = runner.run(make_batch("tokens", "text", "weights"))
    assert [each.shape for each in mixed] == [(5, 32), (32,), (22,)]
    forms: tuple[VectorForm, ...] = ("tokens", "text", "weights")
    for form, text, result in zip(forms, TEXTS, mixed, strict=True):
        [alone] = runner.run(make_batch(form, texts=(text,)))
        assert np.abs(alone - result).max() < 2e-5


def test_unseen_tokens_change_no_other_token(tmp_path: Path) -> None:
    runner = create_encoder_runner(*make_configs(GOLDEN / "hf-colbert", tmp_path))
    assert runner.info.forms == ("tokens",)
    assert (runner.info.vector_size, runner.info.token_vector_size) == (16, 16)
    longer = (*TEXTS[:2], [*TEXTS[1], 4, 4, 4])
    lens = tuple(len(text) for text in TEXTS[:2])
    _, text, expanded = runner.run(make_batch(*_THREE_OF_TOKENS, texts=longer, visible=(*lens, 3)))
    assert np.abs(expanded[:3] - text).max() < 2e-5
    assert np.abs(expanded[3:]).min() > 0
    *_, attending = runner.run(make_batch(*_THREE_OF_TOKENS, texts=longer))
    assert np.abs(attending[:3] - text).max() > 0.01


@pytest.mark.parametrize("name", ["bge-m3", "hf-colbert", "pylate-modernbert", "pylate-residual"])
def test_rounded_weights_keep_the_vectors(name: str, tmp_path: Path) -> None:
    exact = create_encoder_runner(*make_configs(GOLDEN / name, tmp_path))
    rounded = create_encoder_runner(
        *make_configs(GOLDEN / name, tmp_path, weights="int8", precision="auto")
    )
    batch = make_batch(*_THREE_OF_TOKENS)
    for one, other in zip(exact.run(batch), rounded.run(batch), strict=True):
        assert find_cosines(one, other).mean() > 0.99


@pytest.mark.parametrize(
    ("name", "forms", "size"),
    [
        ("bge-m3", ("text", "tokens", "weights"), 32),
        ("hf-colbert", ("tokens",), 16),
        ("multi-vector", ("tokens",), 16),
        ("pylate-residual", ("tokens",), 8),
    ],
)
def test_an_inspection_names_the_forms(
    name: str, forms: tuple[VectorForm, ...], size: int, tmp_path: Path
) -> None:
    found = inspect_model(*make_configs(GOLDEN / name, tmp_path))
    assert (found.task, found.forms, found.vector_size) == ("embed", forms, size)


def load(directory: Path, cache_dir: Path) -> None:
    create_encoder_runner(*make_configs(directory, cache_dir))


def test_wrong_heads_are_refused(tmp_path: Path) -> None:
    directory = tmp_path / "m3"
    shutil.copytree(GOLDEN / "bge-m3", directory)
    short = {"weight": np.zeros((1, 31), np.float32), "bias": np.zeros(1, np.float32)}
    save_arrays(directory / "sparse_linear.pt", short)
    with pytest.raises(ModelLoadError, match=r"weight must be \[1, 32\] numbers .* \[1, 31\]"):
        load(directory, tmp_path)
    save_arrays(directory / "sparse_linear.pt", {"weight": np.zeros((1, 32), np.float32)})
    with pytest.raises(ModelLoadError, match=r"bias must be \[1\] numbers .* found none"):
        load(directory, tmp_path)


def test_a_colbert_without_its_head_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(GOLDEN / "hf-colbert", directory)
    shutil.copy(GOLDEN / "multi-vector" / "model.safetensors", directory)
    with pytest.raises(ModelLoadError, match=r"linear\.weight"):
        load(directory, tmp_path)


def test_layers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(GOLDEN / "pylate-residual", directory)
    path = directory / "modules.json"
    path.write_text(json.dumps([each for each in json.loads(path.read_text()) if each["idx"] != 1]))
    with pytest.raises(ModelLoadError, match="must take 32 values, one takes 64"):
        load(directory, tmp_path)


def test_a_decoder_with_vectors_of_tokens_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(GOLDEN.parent / "golden_sentences" / "qwen3-embedding", directory)
    for name in ("1_Dense", "modules.json", "config_sentence_transformers.json"):
        source = GOLDEN / "pylate-modernbert" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, directory / name)
    with pytest.raises(ModelLoadError, match="which only encoders make; a qwen3 is a decoder"):
        create_runner(*make_configs(directory, tmp_path))


def test_a_pooling_mode_is_refused_beside_vectors_of_tokens(tmp_path: Path) -> None:
    model, engine = make_configs(GOLDEN / "hf-colbert", tmp_path)
    with pytest.raises(ModelLoadError, match="must be auto for a model that makes a vector of"):
        create_encoder_runner(
            ModelConfig(model=model.model, cache_dir=model.cache_dir, pooling="mean"), engine
        )
