"""Sentence-transformers' files are read; unsupported settings are refused by name."""

import json
from pathlib import Path

import numpy as np
import pytest

from ouzel.checkpoint.activations import Activation, apply_activation
from ouzel.checkpoint.sentence_files import SentenceFiles, read_sentence_files
from ouzel.checkpoint.text_tasks import TextPrompt
from ouzel.errors import ModelLoadError

TRANSFORMER = {
    "idx": 0,
    "name": "0",
    "path": "",
    "type": "sentence_transformers.models.Transformer",
}
POOLING = {
    "idx": 1,
    "name": "1",
    "path": "1_Pooling",
    "type": "sentence_transformers.models.Pooling",
}
NORMALIZE = {
    "idx": 2,
    "name": "2",
    "path": "2_Normalize",
    "type": "sentence_transformers.models.Normalize",
}
LOGIT_SCORE = {
    "idx": 1,
    "name": "1",
    "path": "1_LogitScore",
    "type": "sentence_transformers.models.LogitScore",
}
DENSE = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}


def write(directory: Path, **files: object) -> Path:
    """Takes the files by their paths, with / as __ and without their ending."""
    for name, content in files.items():
        path = directory / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    return directory


def test_without_modules_it_is_what_the_library_takes_then(tmp_path: Path) -> None:
    write(tmp_path, config={})
    assert read_sentence_files(tmp_path, "encoder") == SentenceFiles(modes=("mean",))
    assert read_sentence_files(tmp_path, "decoder") == SentenceFiles(
        modes=("lasttoken",), normalises=True
    )


def test_older_files_have_a_flag_for_each_pooling(tmp_path: Path) -> None:
    flags = {
        "word_embedding_dimension": 4,
        "pooling_mode_cls_token": True,
        "pooling_mode_mean_tokens": False,
    }
    write(
        tmp_path,
        config={"matryoshka_dimensions": [2]},
        modules=[TRANSFORMER, POOLING, NORMALIZE],
        sentence_bert_config={"max_seq_length": 256, "do_lower_case": True},
    )
    write(tmp_path, **{"1_Pooling__config": flags})
    files = read_sentence_files(tmp_path, "encoder")
    assert (files.modes, files.normalises, files.max_tokens, files.is_matryoshka) == (
        ("cls",),
        True,
        256,
        True,
    )
    assert files.lowers_case


@pytest.mark.parametrize(("limit", "max_tokens"), [(128, 128), (10**30, None)])
def test_without_a_limit_of_its_own_the_tokenizers_holds(
    tmp_path: Path, limit: int, max_tokens: int | None
) -> None:
    write(tmp_path, config={}, tokenizer_config={"model_max_length": limit})
    assert read_sentence_files(tmp_path, "encoder").max_tokens == max_tokens


def test_prompts_have_names_and_one_may_be_the_default(tmp_path: Path) -> None:
    own = {"prompts": {"query": "ask: ", "document": ""}, "default_prompt_name": "query"}
    write(tmp_path, config={}, config_sentence_transformers=own)
    files = read_sentence_files(tmp_path, "encoder")
    assert (files.default_prompt.text, files.prompts["document"]) == ("ask: ", "")
    assert (files.query_prompt.text, files.document_prompt.text) == ("ask: ", "")


def test_the_default_prompt_has_the_task_of_its_name(tmp_path: Path) -> None:
    config = {"lora_adaptations": ["search", "sort"], "task_instructions": {"sort": "sort: "}}
    own = {"default_prompt_name": "sort"}
    write(tmp_path, config=config, config_sentence_transformers=own)
    assert read_sentence_files(tmp_path, "encoder").default_prompt == TextPrompt("sort: ", 2)


def test_a_decoder_scores_by_the_tokens_that_its_files_name(tmp_path: Path) -> None:
    write(tmp_path, config={}, modules=[TRANSFORMER, LOGIT_SCORE])
    write(tmp_path, **{"1_LogitScore__config": {"true_token_id": 9, "false_token_id": 2}})
    assert read_sentence_files(tmp_path, "decoder").answer_ids == (9, 2)


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        ({"query": "q: ", "document": "", "passage": "p: "}, ("q: ", "p: ")),
        ({"query": "q: "}, ("q: ", "any: ")),
        ({}, ("any: ", "any: ")),
    ],
)
def test_queries_and_documents_have_prompts(
    prompts: dict[str, str], expected: tuple[str, str]
) -> None:
    files = SentenceFiles(modes=("mean",), prompts=prompts, default_prompt=TextPrompt("any: "))
    assert (files.query_prompt.text, files.document_prompt.text) == expected


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"modules": [{"type": "sentence_transformers.models.LSTM", "path": "1"}]},
            "LSTM.* is not supported",
        ),
        ({"modules": [TRANSFORMER, NORMALIZE, DENSE]}, "Dense.* is not supported"),
        ({"modules": {}}, "modules.json cannot be read"),
        (
            {"modules": [POOLING | {"path": ".."}]},
            "must be below the model's directory",
        ),
        (
            {"modules": [TRANSFORMER, LOGIT_SCORE], "1_LogitScore__config": {"true_token_id": 1}},
            "found 1, null",
        ),
        (
            {"modules": [POOLING], "1_Pooling__config": {"pooling_mode": "median"}},
            'pooling_mode "median" is not',
        ),
        (
            {"modules": [POOLING], "1_Pooling__config": {"include_prompt": False}},
            "include_prompt false is not",
        ),
        (
            {"modules": [DENSE], "2_Dense__config": {"in_features": 0, "out_features": 3}},
            "must be from 1 to",
        ),
        (
            {"modules": [DENSE], "2_Dense__config": {"activation_function": "torch.nn.Mish"}},
            "activation_function must be one of Identity",
        ),
        ({"config_sentence_transformers": {"prompts": {"query": 3}}}, "prompts must be texts"),
        (
            {"config_sentence_transformers": {"default_prompt_name": "query"}},
            "must be among its prompts",
        ),
        (
            {"config": {"sbert_ce_default_activation_function": "torch.nn.Mish"}},
            "activation_fn .*Mish",
        ),
    ],
)
def test_what_is_not_known_is_refused(
    tmp_path: Path, files: dict[str, object], message: str
) -> None:
    write(tmp_path, **({"config": {}} | files))
    with pytest.raises(ModelLoadError, match=message):
        read_sentence_files(tmp_path, "encoder")


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("identity", [-100, 0, 1]),
        ("sigmoid", [0, 0.5, 0.7310586]),
        ("tanh", [-1, 0, 0.7615942]),
        ("relu", [0, 0, 1]),
        ("gelu", [0, 0, 0.8413447]),
    ],
)
def test_activations_are_those_of_torch(activation: Activation, expected: list[float]) -> None:
    values = apply_activation(np.array([-100, 0, 1], np.float32), activation)
    assert values.dtype == np.float32
    assert values.tolist() == pytest.approx(expected, abs=1e-6)
