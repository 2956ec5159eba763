"""Every field of a form becomes an option, or is refused by its name."""

import logging

import httpx
import openai
import pytest
from openai.types.audio.transcription_create_params import ChunkingStrategyVadConfig

from ouzel.transcription.options import TranscriptionOptions, VoiceDetection
from tests.api.requests import read_error
from tests.api.speech.listening import MODEL, ListeningServer, listening_server
from tests.api.speech.posting import PATH, TRANSLATIONS, WORDS, Fields, post_sound

DETECTION = VoiceDetection(threshold=0.25, prefix_padding_ms=100)
VAD: ChunkingStrategyVadConfig = {
    "type": "server_vad",
    "threshold": 0.25,
    "prefix_padding_ms": 100,
}


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ({}, TranscriptionOptions()),
        ({"language": "en"}, TranscriptionOptions(language="en")),
        ({"language": "German"}, TranscriptionOptions(language="de")),
        ({"language": "pt-BR"}, TranscriptionOptions(language="pt")),
        ({"language": ""}, TranscriptionOptions()),
        ({"prompt": "Ouzel"}, TranscriptionOptions(prompt="Ouzel")),
        ({"temperature": "0"}, TranscriptionOptions()),
        ({"temperature": "0.5"}, TranscriptionOptions(temperature=0.5, falls_back=False)),
        ({"seed": "7"}, TranscriptionOptions(seed=7)),
        ({"beam_size": "5"}, TranscriptionOptions(beam_size=5)),
        ({"priority": "-1"}, TranscriptionOptions(priority=-1)),
        ({"include[]": "logprobs"}, TranscriptionOptions(num_logprobs=0)),
        ({"chunking_strategy": "auto"}, TranscriptionOptions(chunking="vad")),
        (
            {"chunking_strategy": '{"type": "server_vad", "threshold": 0.25}'},
            TranscriptionOptions(chunking="vad", detection=VoiceDetection(threshold=0.25)),
        ),
        (
            {"response_format": "verbose_json", "timestamp_granularities[]": "word"},
            TranscriptionOptions(has_words=True),
        ),
        (
            {"response_format": "verbose_json", "timestamp_granularities": '["word"]'},
            TranscriptionOptions(has_words=True),
        ),
        (
            {"response_format": "verbose_json", "timestamp_granularities": ["segment", "word"]},
            TranscriptionOptions(has_words=True),
        ),
        ({"top_p": "1.0", "n": "1", "temperature": ""}, TranscriptionOptions()),
    ],
)
def test_a_field_is_an_option(
    http: httpx.Client, listening: ListeningServer, fields: Fields, options: TranscriptionOptions
) -> None:
    answer = post_sound(http, fields)
    assert answer.status_code == 200, answer.text
    assert listening.repeater.options[-1] == options


def test_the_client_sends_objects_in_brackets(
    client: openai.OpenAI, listening: ListeningServer
) -> None:
    client.audio.transcriptions.create(
        file=WORDS,
        model=MODEL,
        chunking_strategy=VAD,
    )
    assert listening.repeater.options[-1] == TranscriptionOptions(
        chunking="vad", detection=DETECTION
    )


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        (
            {"response_format": "diarized_json"},
            "response_format",
            'response_format must be one of "json", "srt", "text", "verbose_json", "vtt", given '
            '"diarized_json"',
        ),
        (
            {"timestamp_granularities[]": "word"},
            "timestamp_granularities",
            "timestamp_granularities needs response_format to be verbose_json, given 'json'",
        ),
        (
            {"include[]": "logprobs", "response_format": "verbose_json"},
            "include",
            "include needs response_format to be json, given 'verbose_json'",
        ),
        (
            {"stream": "true", "response_format": "srt"},
            "response_format",
            "response_format must be json, text or verbose_json with stream, given 'srt'",
        ),
        ({"stream": "maybe"}, "stream", "stream must be true or false, given 'maybe'"),
        ({"temperature": "1.5"}, "temperature", "temperature must be <= 1.0, given 1.5"),
        (
            {"language": "klingon"},
            "language",
            "language must be the code or the English name of a language, such as en or english, "
            "given 'klingon'",
        ),
        (
            {"known_speaker_names[]": "Polly"},
            "known_speaker_names",
            'known_speaker_names is not supported here, given ["Polly"]',
        ),
        (
            {"keywords[]": "Ouzel"},
            "keywords",
            'keywords is not supported here (use prompt), given ["Ouzel"]',
        ),
        ({"top_p": "0.5"}, "top_p", 'top_p is not supported here, given "0.5"'),
        (
            {"model": MODEL, "model[a]": "b"},
            "model",
            "model must be either an object or a text",
        ),
    ],
)
def test_a_field_is_refused_by_its_name(
    http: httpx.Client, fields: Fields, param: str, message: str
) -> None:
    answer = post_sound(http, fields)
    assert answer.status_code == 400
    error = read_error(answer)
    assert (error["param"], error["message"]) == (param, message)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"timestamp_granularities[]": "word"}, "timestamp_granularities"),
        ({"include": "a"}, "include"),
    ],
)
def test_a_translation_has_no_times_of_words(
    http: httpx.Client, fields: Fields, param: str
) -> None:
    answer = post_sound(http, fields, path=TRANSLATIONS)
    assert answer.status_code == 400
    assert read_error(answer)["param"] == param
    assert "(use /v1/audio/transcriptions)" in read_error(answer)["message"]


def test_a_model_without_alignment_heads_has_no_times_of_words() -> None:
    with (
        listening_server("create_listener_without_heads") as listening,
        listening.server.client() as http,
    ):
        answer = post_sound(
            http, {"response_format": "verbose_json", "timestamp_granularities[]": "word"}
        )
    assert answer.status_code == 400
    assert read_error(answer)["param"] == "timestamp_granularities"
    assert "alignment heads" in read_error(answer)["message"]


def test_an_unknown_field_is_ignored_with_a_line_in_the_log(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel.wire.decode")
    assert post_sound(http, {"zeal": "1"}).status_code == 200
    assert [record.getMessage() for record in caplog.records] == ["ignored fields: 'zeal'"]


def test_the_file_needs_no_name(http: httpx.Client) -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\none two\r\n--b--\r\n'
    content_type = {"content-type": "multipart/form-data; boundary=b"}
    answer = http.post(PATH, content=form, headers=content_type)
    assert (answer.status_code, answer.json()["text"]) == (200, "one two")
