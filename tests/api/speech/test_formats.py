"""Transcriptions and translations have OpenAI's forms, which OpenAI's client reads."""

from typing import Literal

import httpx
import openai
import pytest
from openai.types.audio import (
    Transcription,
    TranscriptionVerbose,
    TranslationVerbose,
)
from openai.types.audio.transcription import UsageTokens

from tests.api.speech.listening import MODEL, ListeningServer
from tests.api.speech.posting import PATH, WORDS, post_sound

SRT = "1\n00:00:00,000 --> 00:00:02,000\none two\n\n2\n00:00:02,000 --> 00:00:04,000\nthree\n\n"
VTT = "WEBVTT\n\n00:00.000 --> 00:02.000\none two\n\n00:02.000 --> 00:04.000\nthree\n\n"


def test_json_has_the_text_and_the_tokens(client: openai.OpenAI) -> None:
    made = client.audio.transcriptions.create(file=WORDS, model=MODEL)

    assert isinstance(made, Transcription)
    assert made.text == "one two three"
    assert isinstance(made.usage, UsageTokens)
    assert made.usage.model_dump() == {
        "type": "tokens",
        "input_tokens": 1503,
        "input_token_details": {"audio_tokens": 1500, "text_tokens": 3},
        "output_tokens": 3,
        "total_tokens": 1506,
    }
    assert made.logprobs is None


def test_json_has_the_logprobs_of_its_tokens_if_they_are_included(client: openai.OpenAI) -> None:
    made = client.audio.transcriptions.create(file=WORDS, model=MODEL, include=["logprobs"])

    assert made.logprobs is not None
    assert [each.model_dump() for each in made.logprobs] == [
        {"token": letter, "logprob": -0.5, "bytes": [ord(letter)]} for letter in "ott"
    ]


def test_verbose_json_has_segments(client: openai.OpenAI) -> None:
    made = client.audio.transcriptions.create(
        file=WORDS, model=MODEL, response_format="verbose_json"
    )

    assert isinstance(made, TranscriptionVerbose)
    assert (made.text, made.language, made.duration) == ("one two three", "german", 3.0)
    assert made.words is None
    assert made.segments is not None
    assert [segment.model_dump() for segment in made.segments] == [
        {
            "id": 0,
            "seek": 0,
            "start": 0.0,
            "end": 2.0,
            "text": " one two",
            "tokens": [ord("o"), ord("t")],
            "temperature": 0.0,
            "avg_logprob": -0.5,
            "compression_ratio": 1.25,
            "no_speech_prob": 0.125,
        },
        made.segments[1].model_dump(),
    ]
    assert made.usage is not None and made.usage.model_dump() == {
        "type": "duration",
        "seconds": 3.0,
    }


@pytest.mark.parametrize(
    ("granularities", "has_segments"), [(["word"], False), (["word", "segment"], True)]
)
def test_verbose_json_has_the_times_that_are_asked_for(
    client: openai.OpenAI, granularities: list[Literal["word", "segment"]], has_segments: bool
) -> None:
    made = client.audio.transcriptions.create(
        file=WORDS,
        model=MODEL,
        response_format="verbose_json",
        timestamp_granularities=granularities,
    )

    assert isinstance(made, TranscriptionVerbose)
    assert made.words is not None
    assert [word.model_dump() for word in made.words] == [
        {"word": "one", "start": 0.0, "end": 0.9},
        {"word": "two", "start": 1.0, "end": 1.9},
        {"word": "three", "start": 2.0, "end": 2.9},
    ]
    assert (made.segments is not None) == has_segments


@pytest.mark.parametrize(
    ("form", "text"), [("text", "one two three\n"), ("srt", SRT), ("vtt", VTT)]
)
def test_texts_are_plain(http: httpx.Client, form: str, text: str) -> None:
    answer = post_sound(http, {"response_format": form})

    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.text == text


@pytest.mark.parametrize("form", ["text", "srt", "vtt"])
def test_the_client_returns_texts(
    client: openai.OpenAI, form: Literal["text", "srt", "vtt"]
) -> None:
    made = client.audio.transcriptions.create(
        file=WORDS,
        model=MODEL,
        response_format=form,
    )
    assert isinstance(made, str) and "three" in made


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")  # OpenAI's whisper-1
def test_a_translation_is_english(client: openai.OpenAI, listening: ListeningServer) -> None:
    made = client.audio.translations.create(file=WORDS, model=MODEL, response_format="verbose_json")

    assert isinstance(made, TranslationVerbose)
    assert (made.language, made.text) == ("english", "one two three")
    assert made.segments is not None and len(made.segments) == 2
    assert listening.repeater.options[-1].task == "translate"
    assert client.audio.translations.create(file=WORDS, model=MODEL).text == "one two three"


@pytest.mark.parametrize("prefix", ["/v1", "/v3", "/v3/v1"])
def test_every_prefix_works_without_a_model_name(http: httpx.Client, prefix: str) -> None:
    answer = post_sound(http, path=PATH.replace("/v1", prefix))
    assert (answer.status_code, answer.json()["text"]) == (200, "one two three")


def test_the_sound_is_closed(http: httpx.Client, listening: ListeningServer) -> None:
    post_sound(http)
    assert listening.decoder.sounds[-1].is_closed
