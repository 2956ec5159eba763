"""The control tokens of speech models come from several files."""

import json
from pathlib import Path

import pytest

from ouzel.checkpoint.speech_languages import LANGUAGE_NAMES, find_language
from ouzel.checkpoint.speech_tokens import read_speech_tokens
from ouzel.errors import ModelLoadError

SPELLINGS = [
    "<|endoftext|>",
    "<|startoftranscript|>",
    "<|en|>",
    "<|zh|>",
    "<|yue|>",
    "<|translate|>",
    "<|transcribe|>",
    "<|startoflm|>",
    "<|startofprev|>",
    "<|nocaptions|>",
    "<|notimestamps|>",
]


def write_files(directory: Path, generation: object, *, num_spelled: int = len(SPELLINGS)) -> None:
    added = [
        {"id": 100 + place, "content": spelling}
        for place, spelling in enumerate(SPELLINGS[:num_spelled])
    ]
    (directory / "generation_config.json").write_text(json.dumps(generation))
    (directory / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))


def test_the_generation_config_counts(tmp_path: Path) -> None:
    generation = {
        "decoder_start_token_id": 201,
        "eos_token_id": [200],
        "no_timestamps_token_id": 210,
        "prev_sot_token_id": 209,
        "lang_to_id": {"<|zh|>": 203, "<|en|>": 202},
        "task_to_id": {"transcribe": 206, "translate": 205},
        "is_multilingual": True,
        "suppress_tokens": [-1, 9, 3],
        "begin_suppress_tokens": [220],
        "max_initial_timestamp_index": 1,
        "alignment_heads": [[2, 1]],
    }
    write_files(tmp_path, generation, num_spelled=0)
    tokens = read_speech_tokens(tmp_path)
    assert (tokens.start, tokens.end, tokens.previous, tokens.no_speech) == (201, 200, 209, None)
    assert (tokens.no_timestamps, tokens.first_timestamp) == (210, 211)
    assert list(tokens.languages.items()) == [("en", 202), ("zh", 203)]
    assert tokens.tasks == {"transcribe": 206, "translate": 205}
    assert tokens.suppressed == (3, 9, 201, 205, 206, 209)
    assert (tokens.suppressed_first, tokens.max_first_timestamp) == ((220,), 1)
    assert tokens.alignment_heads == ((2, 1),)


def test_the_tokenizer_fills_gaps(tmp_path: Path) -> None:
    write_files(tmp_path, {"is_multilingual": True})
    tokens = read_speech_tokens(tmp_path)
    assert (tokens.start, tokens.end, tokens.previous, tokens.no_speech) == (101, 100, 108, 109)
    assert (tokens.no_timestamps, tokens.first_timestamp) == (110, 111)
    assert tokens.languages == {"en": 102, "zh": 103, "yue": 104}
    assert tokens.tasks == {"transcribe": 106, "translate": 105}
    assert tokens.suppressed == (101, 105, 106, 107, 108, 109)
    assert tokens.find_language("Cantonese") == "yue"
    assert tokens.find_language("de") is None


def test_the_config_fills_gaps(tmp_path: Path) -> None:
    write_files(tmp_path, {})
    config = {"vocab_size": 51865, "begin_suppress_tokens": [220, 100]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    tokens = read_speech_tokens(tmp_path)
    assert tokens.is_multilingual
    assert tokens.suppressed_first == (100, 220)


def test_a_model_for_english_has_no_languages(tmp_path: Path) -> None:
    write_files(tmp_path, {"is_multilingual": False})
    tokens = read_speech_tokens(tmp_path)
    assert (tokens.languages, tokens.tasks) == ({}, {})
    assert tokens.find_language("English") == "en"
    assert tokens.find_language("zh") is None


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        ({}, "must name the token <|startoftranscript|>"),
        ({"suppress_tokens": ["a"]}, "generation_config.json"),
        ({"lang_to_id": {"<|en|>": -5}}, "generation_config.json"),
        ({"max_initial_timestamp_index": 10**9}, "generation_config.json"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, generation: object, message: str) -> None:
    write_files(tmp_path, generation, num_spelled=0)
    with pytest.raises(ModelLoadError) as caught:
        read_speech_tokens(tmp_path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("en", "en"),
        ("en-US", "en"),
        ("pt_BR", "pt"),
        ("English", "en"),
        ("haitian creole", "ht"),
        ("Mandarin", "zh"),
        ("jv", "jw"),
        ("klingon", None),
        ("", None),
    ],
)
def test_languages_have_codes_and_names(text: str, code: str | None) -> None:
    assert find_language(text) == code


def test_there_are_a_hundred_languages() -> None:
    assert len(LANGUAGE_NAMES) == 100
