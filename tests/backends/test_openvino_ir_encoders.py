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
from ouzel.backends.openvino.library import ops, ov
from ouzel.checkpoint.sentence_files import read_sentence_files
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import Engine
from ouzel.errors import ModelLoadError
from ouzel.model_store.verdict import judge
from ouzel.serve.engine_factories import openvino_engine
from ouzel.vectors import EncodedText, activate_logits, finish_vectors
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
    texts = encoded(directory, [files.default_prompt.text + text for text in golden.texts])
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


def write_small_ir(directory: Path, **config: object) -> NDArray[np.float32]:
    """Writes a graph that adds rows of tokens, token types and positions; returns the table."""
    table = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    names = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    inputs = [ops.parameter([-1, -1], ov.Type.i64, name=name) for name in names]
    for parameter, name in zip(inputs, names, strict=True):
        parameter.output(0).set_names({name})
    token_ids, mask, types, positions = inputs
    constant, axis = ops.constant(table), ops.constant(np.int64(0))
    sums = ops.add(
        ops.add(ops.gather(constant, token_ids, axis), ops.gather(constant, types, axis)),
        ops.gather(constant, positions, axis),
    )
    shown = ops.unsqueeze(ops.convert(mask, "f32"), ops.constant(np.array([2], np.int64)))
    result = ops.result(ops.multiply(sums, shown))
    result.output(0).set_names({"last_hidden_state"})
    graph = ov.Model([result], inputs, "small")
    ov.save_model(graph, directory / "openvino_model.xml", compress_to_fp16=False)
    (directory / "config.json").write_text(json.dumps(config))
    return table


def test_an_ir_of_an_unknown_family_gets_all_inputs_of_encoders(tmp_path: Path) -> None:
    table = write_small_ir(tmp_path, model_type="nobody", vocab_size=64, n_positions=32)
    engine = make_engine(tmp_path)
    texts = [EncodedText([7, 8, 9], 2), EncodedText([5], 1)]
    vectors = compute_vectors(engine, texts)

    assert (engine.info.task, engine.info.max_model_len) == ("embed", 32)
    rows = table[[7, 8, 9]] + table[[0, 0, 1]] + table[[0, 1, 2]]
    np.testing.assert_allclose(
        vectors, [rows.mean(axis=0), table[5] + 2 * table[0]], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "xlm-roberta", "max_position_embeddings": 32, "pad_token_id": 1}, 30),
        (
            {
                "model_type": "xlm-roberta",
                "max_position_embeddings": 32,
                "pad_token_id": 1,
                "position_embedding_type": "rotary",
            },
            32,
        ),
    ],
)
def test_only_positions_of_a_table_begin_behind_the_padding(
    config: dict[str, object], expected: int, tmp_path: Path
) -> None:
    write_small_ir(tmp_path, vocab_size=64, **config)
    assert make_engine(tmp_path).info.max_model_len == expected


def test_an_ir_without_a_number_of_positions_is_refused(tmp_path: Path) -> None:
    write_small_ir(tmp_path, model_type="nobody", vocab_size=64)
    with pytest.raises(ModelLoadError, match="max_position_embeddings or n_positions is missing"):
        make_engine(tmp_path)


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
