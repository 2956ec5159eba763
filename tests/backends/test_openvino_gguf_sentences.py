"""GGUF files of encoders and embedders, as llama.cpp's own converter makes them.

Vectors and scores are compared with the results of sentence-transformers from the original
checkpoints.
"""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from ouzel.backends.openvino.weights.gguf import GgufCheckpoint
from ouzel.backends.openvino.weights.source import Tensor
from ouzel.checkpoint.model_files import JsonObject
from ouzel.checkpoint.sentence_files import read_sentence_files
from ouzel.errors import ModelLoadError
from ouzel.gguf.config import make_model_config
from ouzel.gguf.file import read_gguf
from ouzel.gguf.model_directory import model_directory
from ouzel.gguf.pooling import make_sentence_files
from ouzel.vectors import activate_logits, finish_vectors
from tests.backends.test_openvino_sentences import (
    Golden,
    compute_vectors,
    encoded,
    load_engine,
    read_golden,
)
from tests.gguf.writer import RawTensor, Value, make_gguf

GOLDEN = Path(__file__).parents[1] / "gguf" / "golden_sentences"
WITHOUT_TOKENIZER = ["embedding-gemma", "eurobert", "modernbert", "qwen3-embedding", "xlm-roberta"]
RERANKERS = ["cross-modernbert", "cross-xlm-roberta"]
WITH_TOKENIZER = sorted(
    path.stem for path in GOLDEN.glob("*.gguf") if path.stem not in (*WITHOUT_TOKENIZER, *RERANKERS)
)

# The weights of norms are stored plus 1, which rounds them (3.3e-5 measured).
TOLERANCES = {"embedding-gemma": 1e-4}
# Settings in llama.cpp's code. The golden checkpoint has other values than the published model.
NOT_IN_A_FILE: dict[str, JsonObject] = {
    "embedding-gemma": {
        "query_pre_attn_scalar": 8,
        "layer_types": [*["sliding_attention"] * 3, "full_attention"],
    }
}


def make_directory(name: str, directory: Path) -> Path:
    """Makes a model directory of a file without tokenizer; the tokenizer is the checkpoint's."""
    directory.mkdir()
    path = GOLDEN / f"{name}.gguf"
    (directory / path.name).symlink_to(path)
    gguf = read_gguf([path])
    config = make_model_config(gguf) | NOT_IN_A_FILE.get(name, {})
    for file, content in ({"config.json": config} | make_sentence_files(gguf)).items():
        (directory / file).parent.mkdir(exist_ok=True)
        (directory / file).write_text(json.dumps(content))
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(read_golden(name).directory / file, directory)
    return directory


def check_vectors(golden: Golden, directory: Path, tmp_path: Path) -> None:
    engine = load_engine(directory, tmp_path / "cache")
    named = read_sentence_files(golden.directory, "encoder")
    prompts = {"vectors": named.default_prompt.text} | {
        f"vectors.{key}": text for key, text in named.prompts.items()
    }
    files = read_sentence_files(directory, "decoder" if engine.info.num_blocks else "encoder")
    assert engine.info.task == "embed"
    for key, expected in golden.arrays.items():
        texts = encoded(directory, [prompts[key] + text for text in golden.texts])
        vectors = finish_vectors(compute_vectors(engine, texts), files, dimensions=None)
        assert np.abs(vectors - expected).max() < TOLERANCES.get(golden.directory.name, 1e-5)


@pytest.mark.parametrize("name", WITH_TOKENIZER)
def test_vectors_of_a_file_equal_sentence_transformers(name: str, tmp_path: Path) -> None:
    directory = model_directory(GOLDEN / f"{name}.gguf", tmp_path / "made")
    check_vectors(read_golden(name), directory, tmp_path)


@pytest.mark.parametrize("name", WITHOUT_TOKENIZER)
def test_vectors_of_a_file_without_tokenizer_equal_sentence_transformers(
    name: str, tmp_path: Path
) -> None:
    check_vectors(read_golden(name), make_directory(name, tmp_path / "made"), tmp_path)


@pytest.mark.parametrize("name", RERANKERS)
def test_scores_of_a_file_equal_sentence_transformers(name: str, tmp_path: Path) -> None:
    golden, directory = read_golden(name), make_directory(name, tmp_path / "made")
    engine = load_engine(directory, tmp_path / "cache")
    files = read_sentence_files(directory, "encoder")
    texts = encoded(directory, golden.texts, golden.query)
    scores = activate_logits(compute_vectors(engine, texts), files, activates=True)
    assert engine.info.task == "score"
    assert np.abs(scores - golden.arrays["scores"].reshape(len(texts), -1)).max() < 1e-5


def write_encoder(path: Path, architecture: str = "bert", **further: Value) -> Path:
    sizes: dict[str, Value] = {
        "block_count": 1,
        "embedding_length": 4,
        "feed_forward_length": 8,
        "context_length": 16,
        "attention.head_count": 2,
        "attention.layer_norm_epsilon": 1e-12,
    }
    metadata: dict[str, Value] = {"general.architecture": architecture}
    metadata |= {f"{architecture}.{key}": value for key, value in (sizes | further).items()}
    names = (
        "token_embd",
        "token_types",
        *(["cls.output"] if further.get("pooling_type") == 4 else []),
    )
    tensors = [RawTensor(f"{name}.weight", (2, 4), 0, bytes(32)) for name in names]
    path.write_bytes(make_gguf(metadata, tensors))
    return path


@pytest.mark.parametrize(
    ("pooling", "mode"),
    [({}, "mean"), ({"pooling_type": 2}, "cls"), ({"pooling_type": 3}, "lasttoken")],
)
def test_the_pooling_type_becomes_a_pooling(
    pooling: dict[str, Value], mode: str, tmp_path: Path
) -> None:
    gguf = read_gguf([write_encoder(tmp_path / "model.gguf", "bert", **pooling)])
    assert make_model_config(gguf)["model_type"] == "bert"
    assert make_sentence_files(gguf)["1_Pooling/config.json"] == {"pooling_mode": mode}


def test_an_unknown_pooling_type_is_refused(tmp_path: Path) -> None:
    gguf = read_gguf([write_encoder(tmp_path / "model.gguf", pooling_type=7)])
    with pytest.raises(ModelLoadError, match=r"bert\.pooling_type must be 0 \(none\), .* found 7"):
        make_sentence_files(gguf)


def test_a_decoder_that_scores_is_refused(tmp_path: Path) -> None:
    gguf = read_gguf([write_encoder(tmp_path / "model.gguf", "qwen3", pooling_type=4)])
    with pytest.raises(
        ModelLoadError, match=r"qwen3\.pooling_type 4 \(rank\) is supported for enc"
    ):
        make_sentence_files(gguf)


def test_a_reranker_without_its_dense_layer_is_refused(tmp_path: Path) -> None:
    gguf = read_gguf([write_encoder(tmp_path / "model.gguf", pooling_type=4)])
    with pytest.raises(ModelLoadError, match=r"tensor cls\.weight is missing"):
        make_model_config(gguf)


@pytest.mark.parametrize(
    ("further", "message"),
    [
        ({"pooling_type": 4, "classifier.pooling_type": 3}, "must be 1 (mean) or 2 (cls), found 3"),
        ({"rope.scaling.type": "linear"}, "rope.scaling.type must be none, found linear"),
        ({"pooling_type": 4}, "tensor cls.weight is missing"),
    ],
)
def test_other_files_of_modernbert_are_refused(
    further: dict[str, Value], message: str, tmp_path: Path
) -> None:
    window: dict[str, Value] = {"attention.sliding_window": 8}
    path = write_encoder(tmp_path / "model.gguf", "modern-bert", **window, **further)
    with pytest.raises(ModelLoadError, match=re.escape(message)):
        make_model_config(read_gguf([path]))


def test_gate_and_up_of_older_files_are_joined(tmp_path: Path) -> None:
    values = np.arange(2 * 8 * 4, dtype="<f4").reshape(2, 8, 4)
    tensors = [
        RawTensor(f"blk.0.{name}.weight", (8, 4), 0, each.tobytes())
        for name, each in zip(("ffn_up", "ffn_gate"), values, strict=True)
    ]
    path = tmp_path / "model.gguf"
    path.write_bytes(make_gguf({"general.architecture": "jina-bert-v2"}, tensors))
    checkpoint = GgufCheckpoint([path])
    [name] = checkpoint.names()
    assert name == "encoder.layer.0.mlp.gated_layers.weight"
    rows = np.concatenate(list(checkpoint.rows(Tensor(name, (16, 4)))))
    np.testing.assert_array_equal(rows, np.concatenate([values[1], values[0]]))
