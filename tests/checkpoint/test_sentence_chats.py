"""Reads from the files of sentence-transformers whether texts are written as chats."""

import json
from pathlib import Path
from typing import Any

import pytest

from ouzel.checkpoint.sentence_chats import SentenceChats
from ouzel.checkpoint.sentence_files import read_sentence_files
from ouzel.errors import ModelLoadError

MESSAGE = {"message": {"method": "forward", "method_output_name": "last_hidden_state"}}


def write(directory: Path, processor: str = "", **reading: object) -> Path:
    (directory / "sentence_bert_config.json").write_text(json.dumps(reading))
    (directory / "config.json").write_text(json.dumps({"model_type": "qwen3_vl"}))
    if processor:
        (directory / processor).write_text("{}")
    return directory


@pytest.mark.parametrize("modalities", [None, {}, {"text": {"method": "forward"}}])
def test_texts_are_plain_without_the_modality_message(modalities: object, tmp_path: Path) -> None:
    write(tmp_path, modality_config=modalities)
    assert read_sentence_files(tmp_path, "decoder").chats is None


@pytest.mark.parametrize("processor", ["preprocessor_config.json", "processor_config.json"])
def test_a_processor_adds_special_tokens_to_chats(processor: str, tmp_path: Path) -> None:
    kwargs = {"add_generation_prompt": True, "enable_thinking": False, "restore_suffix": True}
    write(
        tmp_path,
        processor,
        modality_config=MESSAGE,
        processing_kwargs={"chat_template": kwargs, "text": {}},
    )
    assert read_sentence_files(tmp_path, "decoder").chats == SentenceChats(
        add_generation_prompt=True,
        add_special_tokens=True,
        template_kwargs={"enable_thinking": False},
    )


def test_a_tokenizer_alone_adds_none(tmp_path: Path) -> None:
    write(tmp_path, modality_config=MESSAGE)
    assert read_sentence_files(tmp_path, "decoder").chats == SentenceChats()


def test_chats_are_not_written_in_lower_case(tmp_path: Path) -> None:
    write(tmp_path, modality_config=MESSAGE, do_lower_case=True)
    with pytest.raises(ModelLoadError, match="message is not supported beside do_lower_case"):
        read_sentence_files(tmp_path, "decoder")


def test_texts_that_are_compared_token_by_token_are_no_chats(tmp_path: Path) -> None:
    write(tmp_path, modality_config=MESSAGE)
    (tmp_path / "config_sentence_transformers.json").write_text('{"model_type": "ColBERT"}')
    with pytest.raises(ModelLoadError, match="message is not supported beside late interaction"):
        read_sentence_files(tmp_path, "encoder")


@pytest.mark.parametrize(
    ("processing", "message"),
    [
        ([1], "processing_kwargs must be an object, found "),
        ({"chat_template": 3}, "processing_kwargs: chat_template must be an object, found 3"),
        (
            {"chat_template": {"add_generation_prompt": "yes"}},
            'add_generation_prompt must be true or false, found "yes"',
        ),
        (
            {"chat_template": {"restore_suffix": False}},
            "chat_template: restore_suffix false is not supported; supported: only true",
        ),
        (
            {"chat_template": {"max_length": 9}},
            "chat_template: max_length 9 is not supported; supported: only null",
        ),
        (
            {"image": {"max_pixels": 4096}},
            'processing_kwargs: "image" is not supported, found {"max_pixels": 4096}',
        ),
    ],
)
def test_other_settings_are_refused(processing: Any, message: str, tmp_path: Path) -> None:
    write(tmp_path, modality_config=MESSAGE, processing_kwargs=processing)
    with pytest.raises(ModelLoadError) as refused:
        read_sentence_files(tmp_path, "decoder")
    assert message in str(refused.value)
    assert "sentence_bert_config.json" in str(refused.value)


def test_a_refusal_names_the_file_in_the_folder_of_the_transformer(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(
        json.dumps([{"type": "sentence_transformers.models.Transformer", "path": "0_Transformer"}])
    )
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen3_vl"}))
    path = tmp_path / "0_Transformer" / "sentence_bert_config.json"
    path.parent.mkdir()
    for more, fault in (
        ({"processing_kwargs": {"chat_template": 3}}, "processing_kwargs: chat_template must be"),
        ({"do_lower_case": True}, "modality_config: message is not supported beside"),
    ):
        path.write_text(json.dumps({"modality_config": MESSAGE, **more}))
        with pytest.raises(ModelLoadError) as refused:
            read_sentence_files(tmp_path, "decoder")
        assert f"{path}: {fault}" in str(refused.value)
