"""Encoders read other spellings of config.json, refuse unsupported values, and share layers."""

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from ouzel.backends.openvino.encoders import encoder_family, is_decoder
from ouzel.backends.openvino.encoders.mpnet import find_bucket
from ouzel.backends.openvino.encoding import encoder_loader
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.safetensors import read_header
from ouzel.checkpoint.hf_config import HfConfig, read_hf_config
from ouzel.checkpoint.sentence_files import read_sentence_files
from ouzel.config import ModelConfig
from ouzel.errors import ModelLoadError
from ouzel.vectors import finish_vectors
from tests.backends.checkpoint_edits import WEIGHTS, rename_tensors
from tests.backends.test_openvino_sentences import (
    GOLDEN,
    compute_vectors,
    encoded,
    load_engine,
    read_golden,
)


def copy_golden(name: str, directory: Path, **values: object) -> Path:
    """Copies a checkpoint with other values in its config.json; None removes a key."""
    shutil.copytree(GOLDEN / name, directory)
    path = directory / "config.json"
    config = json.loads(path.read_text()) | values
    kept = {key: value for key, value in config.items() if values.get(key, value) is not None}
    path.write_text(json.dumps(kept))
    return directory


def measure(directory: Path) -> MeasuredWeights:
    loader = encoder_loader(directory, read_hf_config(directory), ModelConfig(model=str(directory)))
    return loader.measure()[1]


def count_numbers(directory: Path) -> int:
    locations = read_header(directory / WEIGHTS).values()
    return sum(math.prod(location.shape) for location in locations)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("mpnet", {"relative_attention_num_buckets": 16}, "relative_attention_num_buckets 16"),
        ("mpnet", {"max_position_embeddings": 2}, "max_position_embeddings 2 is not supported"),
        ("distilbert", {"n_heads": 5}, "n_heads 5 is not supported; supported: divisors"),
        ("distilbert", {"activation": "relu6"}, "activation relu6 is not supported"),
        ("electra", {"embedding_size": 0}, "embedding_size must be a positive integer"),
        ("electra", {"is_decoder": True}, "is_decoder true is not supported"),
        ("albert", {"num_hidden_groups": 9}, "num_hidden_groups 9 is not supported"),
        ("embedding-gemma", {"sliding_window": 1}, "sliding_window 1 is not supported"),
        ("embedding-gemma", {"attn_logit_softcapping": 5.0}, "attn_logit_softcapping must be null"),
        (
            "embedding-gemma",
            {"architectures": ["Gemma3TextForSequenceClassification"]},
            "supports task embed only, given score",
        ),
    ],
)
def test_an_unsupported_value_is_refused(
    name: str, values: dict[str, object], message: str, tmp_path: Path
) -> None:
    directory = copy_golden(name, tmp_path / name, **values)
    with pytest.raises(ModelLoadError, match=message):
        measure(directory)


OTHER_SPELLINGS: dict[str, dict[str, object]] = {
    "mpnet": {"relative_attention_num_buckets": None},
    "distilbert": {
        **dict.fromkeys(("dim", "n_heads", "n_layers", "activation")),
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_hidden_layers": 3,
    },
    "embedding-gemma": {
        "rope_parameters": None,
        "rope_theta": 1_000_000.0,
        "rope_local_base_freq": 10_000.0,
        "layer_types": None,
        "sliding_window_pattern": 4,
    },
    "albert": dict.fromkeys(
        ("hidden_act", "num_hidden_groups", "inner_group_num", "layer_norm_eps", "type_vocab_size")
    ),
}


@pytest.mark.parametrize("name", OTHER_SPELLINGS)
def test_other_spellings_and_missing_keys_give_the_same_vectors(name: str, tmp_path: Path) -> None:
    golden = read_golden(name)
    directory = copy_golden(name, tmp_path / "model", **OTHER_SPELLINGS[name])
    engine = load_engine(directory, tmp_path / "cache")
    files = read_sentence_files(directory, "encoder")
    vectors = compute_vectors(engine, encoded(directory, golden.texts))
    finished = finish_vectors(vectors, files, dimensions=None)
    assert np.abs(finished - golden.arrays["vectors"]).max() < 1e-5


def test_tensors_of_embedding_gemma_may_have_the_prefix_of_a_decoder(tmp_path: Path) -> None:
    directory = copy_golden("embedding-gemma", tmp_path / "model")
    for name in (b'"layers.', b'"embed_tokens.', b'"norm.'):
        rename_tensors(directory / WEIGHTS, name, b'"model.' + name[1:])
    assert measure(directory).num_parameters == count_numbers(directory)


def test_shared_layers_are_counted_and_stored_once() -> None:
    measured = measure(GOLDEN / "albert")
    assert len(measured.held) == 3 + 1 + 6  # tables, the projection, matrices of one layer
    assert measured.num_parameters == count_numbers(GOLDEN / "albert") - 32 * 32 - 32  # the pooler


@pytest.mark.parametrize(
    ("distance", "bucket"),
    [
        (0, 0),
        (-7, 7),
        (-8, 8),
        (-11, 8),
        (-12, 9),
        (-64, 14),
        (-91, 15),
        (-500, 15),
        (7, 23),
        (64, 30),
    ],
)
def test_mpnets_buckets_grow_with_the_distance(distance: int, bucket: int) -> None:
    assert find_bucket(distance) == bucket


def test_only_a_gemma3_that_attends_to_both_sides_is_an_encoder() -> None:
    gemma = HfConfig({"model_type": "gemma3_text"})
    assert is_decoder(gemma) and encoder_family(gemma) is None
    gemma = gemma.with_values(use_bidirectional_attention=True)
    assert not is_decoder(gemma) and encoder_family(gemma) is not None
