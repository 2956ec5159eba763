"""A server with a speech model turns sound files into text, as a user would ask it.

The model has random weights: its text means nothing, but it is the same text in each form of the
answer, alone and beside others.
"""

import io
import wave
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any  # JSON

import httpx
import numpy as np
import openai
import pytest
from openai import OpenAI

from tests.backends.speech_goldens import SPEECH
from tests.serve.running import RunningServer, serving

# One temperature: a text of random weights is so unlikely that it would be decoded again.
FIXED: dict[str, Any] = {"temperature": 0.4, "language": "en"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    exact = ("--precision", "f32", "--weights", "f32", "--kv-cache-dtype", "f32")
    cache_dir = tmp_path_factory.mktemp("cache")
    with serving(str(SPEECH / "whisper"), *exact, cache_dir=cache_dir) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.url, api_key="none", max_retries=0, timeout=None) as client:
        yield client


def make_wav(seed: int, seconds: float = 2.0) -> bytes:
    samples = np.random.default_rng(seed).normal(0, 3000, int(16_000 * seconds))
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(16_000)
        writer.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


def transcribe(client: OpenAI, seed: int, **options: Any) -> Any:  # options of the client
    return client.audio.transcriptions.create(
        model="whisper",
        file=("speech.wav", make_wav(seed)),
        extra_body={"seed": seed},
        **FIXED,
        **options,
    )


def test_each_form_of_the_answer_has_the_same_text(client: OpenAI) -> None:
    whole = transcribe(client, 1)
    assert whole.text
    assert whole.usage.total_tokens > 1500
    verbose = transcribe(client, 1, response_format="verbose_json")
    assert verbose.text == whole.text
    assert (verbose.language, verbose.duration) == ("english", 2.0)
    assert "".join(segment.text for segment in verbose.segments).strip() == whole.text.strip()
    assert transcribe(client, 1, response_format="text").strip() == whole.text
    events = list(transcribe(client, 1, stream=True))
    deltas = [each.delta for each in events if each.type == "transcript.text.delta"]
    assert "".join(deltas) == events[-1].text == whole.text


def test_words_have_times(client: OpenAI) -> None:
    answer = transcribe(client, 1, response_format="verbose_json", timestamp_granularities=["word"])
    assert answer.words
    assert all(0 <= word.start <= word.end <= 30 for word in answer.words)


def test_files_at_once_have_the_texts_that_they_have_alone(client: OpenAI) -> None:
    alone = [transcribe(client, seed).text for seed in range(4)]
    assert len(set(alone)) > 1
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(lambda seed: transcribe(client, seed % 4).text, range(8)))
    assert together == alone * 2


def test_a_language_that_nobody_names_is_detected(client: OpenAI) -> None:
    answer = client.audio.transcriptions.create(
        model="whisper",
        file=("speech.wav", make_wav(2)),
        response_format="verbose_json",
        temperature=0.4,
        extra_body={"seed": 7},
    )
    assert answer.language in {"english", "chinese", "german", "spanish", "french"}


def test_a_translation_is_an_answer_too(server: RunningServer) -> None:
    """The request is plain, because the client's method is deprecated."""
    fields = {"model": "whisper", "temperature": "0.4", "seed": "7"}
    answer = httpx.post(
        f"{server.url}/audio/translations",
        files={"file": ("speech.wav", make_wav(3))},
        data=fields,
        timeout=None,
    )
    assert answer.json()["text"]


def test_a_speech_model_chats_with_nobody(client: OpenAI) -> None:
    [model] = client.models.list().data
    assert model.model_extra is not None
    assert model.model_extra["capabilities"] == ["transcription"]
    with pytest.raises(openai.BadRequestError, match="turns speech into text"):
        client.chat.completions.create(
            model="whisper", messages=[{"role": "user", "content": "Hello"}]
        )


def test_bytes_without_sound_are_refused(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="file must be a sound file"):
        client.audio.transcriptions.create(model="whisper", file=("a.wav", b"no sound at all"))
