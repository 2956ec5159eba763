"""Posts texts, and reads the sound of answers."""

import base64
import json

import httpx
import numpy as np
from numpy.typing import NDArray

from ouzel.audio.writing.formats import FileFormat
from tests.api.requests import Json, read_events
from tests.api.speaking.humming import MODEL, TONES
from tests.audio.writing.decoding import RATE, decode_file, find_frequencies

PATH = "/v1/audio/speech"
TEXT = "a. b b. c."  # a second of sound


def post_text(
    http: httpx.Client,
    text: object = TEXT,
    further: Json | None = None,
    *,
    path: str = PATH,
    **fields: object,
) -> httpx.Response:
    fields |= further or {}
    return http.post(path, json={"model": MODEL, "input": text, "voice": "af_bella", **fields})


def read_sound(answer: httpx.Response, format_: FileFormat) -> NDArray[np.float32]:
    assert answer.status_code == 200, answer.text
    return decode_file(answer.content, format_)


def read_speech_events(answer: httpx.Response) -> tuple[bytes, Json]:
    """Returns the sound file of the events, and the event of its end."""
    *deltas, done, end = read_events(answer)
    assert end == "[DONE]"
    events = [json.loads(event) for event in deltas]
    assert {event["type"] for event in events} == {"speech.audio.delta"}
    file = b"".join(base64.b64decode(event["audio"], validate=True) for event in events)
    last: Json = json.loads(done)
    return file, last


def assert_hums_text(samples: NDArray[np.float32]) -> None:
    """Checks the tones of TEXT."""
    assert abs(len(samples) / RATE - 1.0) < 0.12
    found = [
        find_frequencies(samples, [begin + 0.07, begin + 0.2])[0] for begin in (0, 0.25, 0.5, 0.75)
    ]
    expected = [TONES[word] for word in "abbc"]
    assert np.allclose(found, expected, atol=12), found
