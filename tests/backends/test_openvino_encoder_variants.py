"""Tests keys of config.json that change the formula of an encoder, and keys that are refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ouzel.checkpoint.sentence_files import read_sentence_files
from ouzel.engine.base import Engine
from ouzel.errors import ModelLoadError
from ouzel.vectors import finish_vectors
from tests.backends.test_openvino_sentences import (
    GOLDEN,
    compute_vectors,
    encoded,
    load_engine,
    read_golden,
)


def load_changed(name: str, directory: Path, **values: object) -> Engine:
    """Loads a golden checkpoint with other values in config.json; None removes a key."""
    copied = shutil.copytree(GOLDEN / name, directory / name)
    path = copied / "config.json"
    config = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
    return load_engine(copied, directory / "cache")


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        ("new", "position_embedding_type", "absolute", "position_embedding_type .absolute. is not"),
        ("new", "layer_norm_type", "rms_norm", "layer_norm_type .rms_norm. is not supported"),
        ("new", "logn_attention_scale", True, "logn_attention_scale true is not supported"),
        ("new", "num_attention_heads", 5, "num_attention_heads 5 is not supported; supported: a"),
        (
            "new",
            "rope_scaling",
            {"type": "ntk", "factor": 2.0, "mixed_b": 0.75},
            "rope_scaling: mixed_b 0.75 is not supported",
        ),
        (
            "new",
            "rope_scaling",
            {"type": "ntk", "factor": 0.5},
            "rope_scaling: factor 0.5 is not supported; supported: 1 or more",
        ),
        ("jina-v3", "lora_adaptations", "query", "lora_adaptations must be up to 256 names"),
        ("jina-v3", "lora_adaptations", None, "tensor roberta.embeddings.word_embeddings.weight"),
        (
            "cross-eurobert",
            "classifier_pooling",
            "max",
            "classifier_pooling .max. is not",
        ),
        (
            "deberta",
            "position_buckets",
            1,
            "position_buckets 1 is not .* 0, or 4",
        ),
        ("deberta", "max_relative_positions", 3, "position_buckets 8 is not supported"),
        ("deberta", "max_position_embeddings", 2**30, "max_position_embeddings 1073741824 is not"),
        ("jina-v2", "max_position_embeddings", 2**30, "max_position_embeddings 1073741824 is not"),
        ("eurobert", "num_key_value_heads", 3, "num_key_value_heads 3 is not supported"),
        ("cross-deberta", "conv_kernel_size", 3, "conv_kernel_size 3 is not supported"),
        ("cross-deberta", "embedding_size", 16, "embedding_size 16 is not supported"),
        ("cross-deberta", "norm_rel_ebd", "batch_norm", "norm_rel_ebd .batch_norm. is not"),
        ("cross-deberta", "pos_att_type", "c2p|p2p", "pos_att_type .c2p.p2p. is not supported"),
        ("cross-deberta", "relative_attention", False, "supported: c2p, p2c with relative_attent"),
    ],
)
def test_a_key_that_changes_the_formula_is_refused(
    name: str, key: str, value: object, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelLoadError, match=message):
        load_changed(name, tmp_path, **{key: value})


def test_older_configurations_of_deberta_write_the_products_as_text(tmp_path: Path) -> None:
    golden = read_golden("deberta")
    texts = encoded(golden.directory, golden.texts)
    older = load_changed("deberta", tmp_path, pos_att_type="p2c|C2P")
    newer = load_engine(golden.directory, tmp_path / "cache")
    np.testing.assert_array_equal(compute_vectors(older, texts), compute_vectors(newer, texts))


def test_older_configurations_of_eurobert_have_other_keys(tmp_path: Path) -> None:
    golden = read_golden("cross-eurobert-bos")
    texts = encoded(golden.directory, golden.texts, golden.query)
    older = load_changed(
        golden.directory.name,
        tmp_path,
        classifier_pooling=None,
        clf_pooling="bos",
        rope_parameters=None,
        rope_theta=250000.0,
    )
    newer = load_engine(golden.directory, tmp_path / "cache")
    np.testing.assert_array_equal(compute_vectors(older, texts), compute_vectors(newer, texts))


def test_both_texts_of_a_pair_have_the_only_token_type_of_gte(tmp_path: Path) -> None:
    golden = read_golden("cross-new")
    engine = load_engine(golden.directory, tmp_path)
    texts = encoded(golden.directory, golden.texts, golden.query)
    halves = [replace(text, second_begin=2) for text in texts]
    np.testing.assert_array_equal(compute_vectors(engine, texts), compute_vectors(engine, halves))


def test_texts_of_a_step_have_tasks_of_their_own(tmp_path: Path) -> None:
    golden = read_golden("jina-v3")
    engine = load_engine(golden.directory, tmp_path)
    files = read_sentence_files(golden.directory, "encoder")
    prompts = [files.named_prompt(name) for name in files.tasks]
    texts = [
        replace(encoded(golden.directory, [prompt.text + golden.texts[0]])[0], task=prompt.task)
        for prompt in prompts
    ]
    found = finish_vectors(compute_vectors(engine, texts), files, dimensions=None)
    expected = np.stack([golden.arrays[f"vectors.{name}"][0] for name in files.tasks])
    assert engine.info.num_tasks == len(files.tasks) == 5
    assert np.abs(found - expected).max() < 1e-5
