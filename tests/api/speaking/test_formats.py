"""Texts are read aloud in each of OpenAI's formats, which OpenAI's client reads."""

import io
from pathlib import Path
from typing import get_args

import av
import httpx
import numpy as np
import openai
import pytest

from ouzel.audio.writing.formats import MEDIA_TYPES, SpeechFormat
from tests.api.speaking.humming import MODEL, HummingServer
from tests.api.speaking.posting import (
    PATH,
    TEXT,
    assert_hums_text,
    post_text,
    read_sound,
    read_speech_events,
)
from tests.audio.writing.decoding import decode_file

FORMATS = get_args(SpeechFormat)


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("prefix", ["/v1", "/v3"])
def test_a_format_has_the_sound_of_the_text(
    http: httpx.Client, prefix: str, format_: SpeechFormat
) -> None:
    answer = post_text(http, path=PATH.replace("/v1", prefix), response_format=format_)
    assert answer.headers["content-type"] == MEDIA_TYPES[format_]
    assert "content-length" not in answer.headers
    assert_hums_text(read_sound(answer, format_))


@pytest.mark.parametrize("format_", FORMATS)
def test_a_whole_file_has_its_length(http: httpx.Client, format_: SpeechFormat) -> None:
    answer = post_text(http, response_format=format_, stream=False)
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert_hums_text(read_sound(answer, format_))
    if format_ == "wav":
        assert int.from_bytes(answer.content[4:8], "little") == len(answer.content) - 8
        assert int.from_bytes(answer.content[40:44], "little") == len(answer.content) - 44
    if format_ == "flac":
        with av.open(io.BytesIO(answer.content), "r") as container:
            assert container.duration == 1_000_000  # microseconds


@pytest.mark.parametrize("format_", FORMATS)
def test_events_have_the_same_file(http: httpx.Client, format_: SpeechFormat) -> None:
    answer = post_text(http, response_format=format_, stream_format="sse")
    file, done = read_speech_events(answer)
    assert_hums_text(decode_file(file, format_))
    assert done == {
        "type": "speech.audio.done",
        "usage": {"input_tokens": 4, "output_tokens": 20, "total_tokens": 24},
    }


@pytest.mark.parametrize("format_", FORMATS)
def test_the_client_writes_a_file(
    client: openai.OpenAI, format_: SpeechFormat, tmp_path: Path
) -> None:
    with client.audio.speech.with_streaming_response.create(
        model=MODEL, voice="alloy", input=TEXT, response_format=format_
    ) as answer:
        answer.stream_to_file(tmp_path / "speech")
    assert_hums_text(decode_file((tmp_path / "speech").read_bytes(), format_))


def test_the_client_sends_a_voice_as_an_object(
    client: openai.OpenAI, humming: HummingServer
) -> None:
    answer = client.audio.speech.create(
        model=MODEL, voice={"id": "bf_emma"}, input=TEXT, speed=2.0, stream_format="audio"
    )
    assert answer.response.headers["content-type"] == "audio/mpeg"
    samples = decode_file(answer.content, "mp3")
    assert len(samples) / 24_000 == pytest.approx(0.5, abs=0.1)
    options = humming.hummer.options[-1]
    assert (options.voice, options.speed, options.language) == ("bf_emma", 2.0, None)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_speech_without_samples_is_a_file(http: httpx.Client, format_: SpeechFormat) -> None:
    answer = post_text(http, "silent.", response_format=format_)
    assert answer.status_code == 200
    samples = decode_file(answer.content, format_) if format_ != "pcm" else np.empty(0)
    assert not samples.any()


def test_the_volume_multiplies_the_samples(http: httpx.Client) -> None:
    quiet = read_sound(post_text(http, response_format="wav", volume_multiplier=0.5), "wav")
    loud = read_sound(post_text(http, response_format="wav", volume_multiplier=10), "wav")
    assert np.abs(quiet).max() == pytest.approx(0.25, abs=0.001)
    assert np.abs(loud).max() == pytest.approx(1.0, abs=0.001)
    assert np.mean(np.abs(loud) > 0.99) > 0.5  # clipped
