from pathlib import Path

import pytest

from ouzel.checkpoint.model_files import (
    SamplingDefaults,
    read_chat_templates,
    read_model_eos_token_ids,
    read_response_template,
    read_special_tokens,
    sampling_defaults,
)
from ouzel.errors import ModelLoadError


def write_files(directory: Path, **texts: str) -> None:
    for name, text in texts.items():
        (directory / f"{name}.json").write_text(text, encoding="utf-8")


def test_an_empty_directory_says_nothing(tmp_path: Path) -> None:
    assert sampling_defaults(tmp_path) == SamplingDefaults()
    assert read_special_tokens(tmp_path) == {}
    assert read_model_eos_token_ids(tmp_path) == ()
    assert read_chat_templates(tmp_path) is None
    assert read_response_template(tmp_path) is None


def test_the_response_template_is_of_the_tokenizer_config(tmp_path: Path) -> None:
    write_files(
        tmp_path, tokenizer_config='{"response_template": {"fields": {}}, "response_schema": {}}'
    )
    assert read_response_template(tmp_path) == {"fields": {}}


def test_sampling_defaults_come_from_the_maker(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        generation_config=(
            '{"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "x": []}'
        ),
    )
    assert sampling_defaults(tmp_path) == SamplingDefaults(
        do_sample=True, temperature=0.6, top_k=20, top_p=0.95
    )


def test_how_tokens_are_guessed_is_read_from_the_generation_config(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        generation_config='{"num_assistant_tokens": 20.0, "assistant_confidence_threshold": 0.4}',
    )
    assert sampling_defaults(tmp_path) == SamplingDefaults(
        num_assistant_tokens=20, assistant_confidence_threshold=0.4
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"temperature": "warm"}',
        '{"top_p": 1.5}',
        '{"min_p": 2}',
        "[]",
        "{",
        '{"eos_token_id": "</s>"}',
    ],
)
def test_a_broken_generation_config_is_named(text: str, tmp_path: Path) -> None:
    write_files(tmp_path, generation_config=text)
    with pytest.raises(ModelLoadError, match=r"generation_config\.json"):
        sampling_defaults(tmp_path)


def test_end_tokens_fall_back_to_the_model_config(tmp_path: Path) -> None:
    write_files(tmp_path, config='{"eos_token_id": [7, 8]}')
    assert read_model_eos_token_ids(tmp_path) == (7, 8)
    write_files(tmp_path, generation_config='{"eos_token_id": 9}')
    assert read_model_eos_token_ids(tmp_path) == (9,)


def test_special_tokens_of_both_files(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        special_tokens_map=(
            '{"bos_token": "<s>", "pad_token": {"content": "<p>"}, '
            '"additional_special_tokens": ["x"]}'
        ),
        tokenizer_config='{"bos_token": "<bos>", "eos_token": null, "add_eos_token": true,'
        ' "extra_special_tokens": {"image_token": "<image>"}}',
    )
    assert read_special_tokens(tmp_path) == {
        "bos_token": "<bos>",
        "pad_token": "<p>",
        "image_token": "<image>",
    }


def test_a_jinja_file_beats_the_tokenizer_config_beats_the_processor_file(tmp_path: Path) -> None:
    def default() -> str:
        texts = read_chat_templates(tmp_path)
        assert texts is not None
        return texts.by_name["default"]

    write_files(tmp_path, chat_template='{"chat_template": "third"}')
    assert default() == "third"
    write_files(tmp_path, tokenizer_config='{"chat_template": "second"}')
    assert default() == "second"
    (tmp_path / "chat_template.jinja").write_text("first")
    assert default() == "first"
    (tmp_path / "other.jinja").write_text("override")
    override = read_chat_templates(tmp_path, str(tmp_path / "other.jinja"))
    assert override is not None
    assert override.by_name == {"default": "override"}


def test_named_templates(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        tokenizer_config='{"chat_template": [{"name": "default", "template": "a"},'
        ' {"name": "tool_use", "template": "b"}]}',
    )
    texts = read_chat_templates(tmp_path)
    assert texts is not None
    assert texts.by_name == {"default": "a", "tool_use": "b"}


def test_named_jinja_files(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("a")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("b")
    texts = read_chat_templates(tmp_path)
    assert texts is not None
    assert texts.by_name == {"default": "a", "tool_use": "b"}


@pytest.mark.parametrize("declared", ["5", "[]", '[{"name": "default"}]'])
def test_a_broken_declaration_is_named(declared: str, tmp_path: Path) -> None:
    write_files(tmp_path, tokenizer_config=f'{{"chat_template": {declared}}}')
    with pytest.raises(ModelLoadError, match=r"tokenizer_config\.json"):
        read_chat_templates(tmp_path)


def test_a_missing_override_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"mine\.jinja"):
        read_chat_templates(tmp_path, str(tmp_path / "mine.jinja"))
