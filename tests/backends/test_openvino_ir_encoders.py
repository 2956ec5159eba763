"""Compares OpenVINO IRs of encoders with sentence-transformers.

`optimum_ir/` holds golden checkpoints of `golden_sentences/`, exported by optimum-intel
(training/golden/README.md). `--library sentence_transformers` exported `minilm-fp32`, whose graph
returns pooled vectors beside the rows.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.backends.openvino.inspection import inspect_model
from ouzel.checkpoint.sentence_files import read_sentence_files
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import Engine
from ouzel.errors import ModelLoadError
from ouzel.model_store.verdict import judge
from ouzel.serve.engine_factories import openvino_engine
from ouzel.vectors import activate_logits, finish_vectors
from tests.backends.test_openvino_ir import OPTIMUM_IR
from tests.backends.test_openvino_sentences import Golden, compute_vectors, encoded, read_golden

EMBEDDERS = ("minilm", "xlm-roberta")


def ir_directory(directory: Path, name: str, *left_out: str, weights: str = "fp32") -> Path:
    """Writes an exported graph and the checkpoint's other files, except the files in `left_out`."""
    ignored = ["model.safetensors", *left_out]
    shutil.copytree(
        read_golden(name).directory, directory, ignore=lambda *_: ignored, dirs_exist_ok=True
    )
    for path in (OPTIMUM_IR / f"{name}-{weights}").iterdir():
        shutil.copy(path, directory)
    return directory


def make_engine(directory: Path, **model: object) -> Engine:
    named = {"model": str(directory), **model}
    return openvino_engine({"model": named, "engine": {"precision": "f32", "num_threads": 1}})


def vectors_by(directory: Path, golden: Golden, engine: Engine) -> NDArray[np.float32]:
    files = read_sentence_files(golden.directory, "encoder")
    texts = encoded(directory, [files.default_prompt + text for text in golden.texts])
    return finish_vectors(compute_vectors(engine, texts), files, dimensions=None)


@pytest.mark.parametrize("name", EMBEDDERS)
def test_vectors_of_an_ir_agree_with_sentence_transformers(name: str, tmp_path: Path) -> None:
    golden = read_golden(name)
    directory = ir_directory(tmp_path, name)
    engine = make_engine(directory)

    assert (engine.info.task, engine.info.weights, engine.info.vector_size) == ("embed", "ir", 32)
    expected = golden.arrays["vectors"]
    assert np.abs(vectors_by(directory, golden, engine) - expected).max() < 1e-5 * max(
        1, np.abs(expected).max()
    )


def test_int8_weights_of_an_ir_turn_vectors_little(tmp_path: Path) -> None:
    golden = read_golden("minilm")
    directory = ir_directory(tmp_path, "minilm", weights="int8")

    cosines = (
        vectors_by(directory, golden, make_engine(directory)) * golden.arrays["vectors"]
    ).sum(axis=1)
    assert cosines.min() > 0.99


def test_scores_of_an_ir_agree_with_sentence_transformers(tmp_path: Path) -> None:
    golden = read_golden("cross-bert")
    directory = ir_directory(tmp_path, "cross-bert")
    engine = make_engine(directory)
    texts = encoded(directory, golden.texts, golden.query)
    scores = activate_logits(
        compute_vectors(engine, texts), read_sentence_files(directory, "encoder"), activates=True
    )

    assert engine.info.task == "score"
    assert np.abs(scores - golden.arrays["scores"].reshape(len(texts), -1)).max() < 1e-5


@pytest.mark.parametrize("left_out", [(), ("modules.json", "1_Pooling")])
def test_a_decoder_without_a_cache_gives_its_last_token(
    left_out: tuple[str, ...], tmp_path: Path
) -> None:
    golden = read_golden("qwen3-embedding")
    directory = ir_directory(tmp_path, "qwen3-embedding", *left_out)
    engine = make_engine(directory, task="embed")
    vectors = vectors_by(directory, golden, engine)

    assert engine.info.is_causal
    assert np.abs(vectors - golden.arrays["vectors"]).max() < 1e-5


def test_the_pooling_of_the_option_replaces_the_pooling_of_the_files(tmp_path: Path) -> None:
    golden = read_golden("minilm")
    directory = ir_directory(tmp_path, "minilm", "modules.json", "1_Pooling")
    mean, first = (
        vectors_by(directory, golden, make_engine(directory, pooling=name))
        for name in ("mean", "cls")
    )

    assert np.abs(mean - golden.arrays["vectors"]).max() < 1e-5
    assert np.abs(mean - first).max() > 0.1


def test_a_text_has_the_same_vector_in_any_company(tmp_path: Path) -> None:
    golden = read_golden("xlm-roberta")
    directory = ir_directory(tmp_path, "xlm-roberta")
    engine, texts = make_engine(directory), encoded(directory, golden.texts * 10)
    alone = np.concatenate([compute_vectors(engine, [text]) for text in texts[: len(golden.texts)]])

    assert (
        np.abs(compute_vectors(engine, texts) - np.tile(alone, (10, 1))).max()
        < 1e-5 * np.abs(alone).max()
    )


def test_inspect_describes_the_ir_of_an_encoder(tmp_path: Path) -> None:
    directory = ir_directory(tmp_path, "xlm-roberta")
    inspection = inspect_model(ModelConfig(model=str(directory)), EngineConfig())
    config = json.loads((directory / "config.json").read_text())

    assert (inspection.task, inspection.vector_size, inspection.num_parameters) == ("embed", 32, 0)
    assert inspection.weights == (("ir", (directory / "openvino_model.bin").stat().st_size),)
    assert (
        inspection.max_positions == config["max_position_embeddings"] - config["pad_token_id"] - 1
    )
    assert judge(directory).is_served


@pytest.mark.parametrize(
    ("name", "task", "message"),
    [
        ("minilm", "generate", "task generate: a bert is an encoder and generates no tokens"),
        ("minilm", "score", "task score: the graph of this OpenVINO IR is made for the task embed"),
        (
            "cross-bert",
            "embed",
            "task embed: the graph of this OpenVINO IR is made for the task score",
        ),
    ],
)
def test_a_task_that_the_graph_is_not_made_for_is_refused(
    name: str, task: str, message: str, tmp_path: Path
) -> None:
    directory = ir_directory(tmp_path, name)
    with pytest.raises(ModelLoadError, match=message):
        make_engine(directory, task=task)


def test_a_graph_with_other_outputs_is_refused(tmp_path: Path) -> None:
    directory = ir_directory(tmp_path, "cross-bert")
    path = directory / "openvino_model.xml"
    path.write_text(path.read_text().replace('names="logits"', 'names="sentence_embedding"'))
    with pytest.raises(ModelLoadError, match="logits of each text, found sentence_embedding"):
        make_engine(directory)
