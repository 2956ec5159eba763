"""Tests the verdicts of `ouzel list` about models on this disk."""

import json
import shutil
from pathlib import Path

import pytest

from ouzel.model_store.verdict import judge, judge_gguf
from ouzel.serve.files_of_model import read_files_of_model

TESTS = Path(__file__).parents[1]
GGUF = TESTS / "gguf" / "golden_sentences"


@pytest.mark.parametrize(
    ("name", "model_type", "task"),
    [
        ("minilm", "bert", "embed"),
        ("nomic", "nomic_bert", "embed"),
        ("embedding-gemma", "gemma3_text", "embed"),
        ("qwen3-embedding", "qwen3", "embed"),
        ("cross-xlm-roberta", "bert", "score"),
    ],
)
def test_gguf_files_of_encoders_are_served(name: str, model_type: str, task: str) -> None:
    verdict = judge_gguf(GGUF / f"{name}.gguf")
    assert (verdict.model_type, verdict.reason) == (model_type, "")
    assert verdict.num_parameters > 1000
    assert read_files_of_model(GGUF / f"{name}.gguf", "auto").task == task


def test_a_type_that_transformers_wrote_at_first_is_served(tmp_path: Path) -> None:
    golden = TESTS / "backends" / "golden_vision" / "lfm2_vl"
    directory = shutil.copytree(golden, tmp_path / "model")
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"model_type": "lfm2-vl"}))
    assert judge(directory) == judge(golden)
