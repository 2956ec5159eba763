"""With OVMS's profile, the answer is a WAV file of float32 samples."""

from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from ouzel.config import ServerConfig
from tests.api.speaking.humming import MODEL, HummingServer, humming_server
from tests.api.speaking.posting import TEXT, assert_hums_text
from tests.audio.writing.decoding import decode_file

PATH = "/v3/audio/speech"
NODE = 'node "T2sExecutor" failed: '


@pytest.fixture(scope="module")
def ovms() -> Iterator[HummingServer]:
    with humming_server(config=ServerConfig(profile="ovms")) as humming:
        yield humming


@pytest.fixture(scope="module")
def http(ovms: HummingServer) -> Iterator[httpx.Client]:
    with ovms.server.client() as http:
        yield http


@pytest.mark.parametrize("path", [PATH, "/v1/audio/speech"])
def test_the_answer_is_a_whole_wav_file_of_floats(
    http: httpx.Client, ovms: HummingServer, path: str
) -> None:
    body = {"model": MODEL, "input": TEXT, "voice": "am_adam", "speed": 1}
    ignored = {"response_format": "mp3", "instructions": "Whisper."}
    answer = http.post(path, json=body | ignored)
    file = answer.content
    assert answer.headers["content-type"] == "audio/wav"
    assert int(answer.headers["content-length"]) == len(file)
    assert int.from_bytes(file[20:22], "little") == 3  # WAVE_FORMAT_IEEE_FLOAT
    assert int.from_bytes(file[4:8], "little") == len(file) - 8
    samples = np.frombuffer(file[44:], "<f4")
    assert len(samples) == 24_000
    assert np.array_equal(samples, decode_file(file, "wav_float"))
    assert_hums_text(samples)
    seen = ovms.hummer.options[-1]
    assert (seen.voice, seen.language, seen.speed) == ("am_adam", "en-us", 1.0)


def test_the_text_may_be_empty(http: httpx.Client) -> None:
    answer = http.post(PATH, json={"model": MODEL, "input": ""})
    assert (answer.status_code, len(answer.content)) == (200, 44)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "input field is missing in JSON body"),
        ({"input": 3}, "input field is not a string"),
        ({"input": None}, "input field is not a string"),
        ({"input": "a.", "stream_format": "audio"}, "streaming is not supported"),
        ({"input": "a.", "voice": 3}, "voice field is not a string"),
        (
            {"input": "a.", "voice": "alloy"},
            "Requested voice 'alloy' not found in available voices",
        ),
        ({"input": "a.", "language": 3}, "language field is not a string"),
        ({"input": "a.", "language": "xx"}, "language must be known, given 'xx'"),
        ({"input": "a.", "speed": "1"}, "speed field is not a number"),
        ({"input": "a.", "speed": 5}, "speed must be >= 0.25 and <= 4.0, given 5"),
    ],
)
def test_an_error_names_the_node(
    http: httpx.Client, fields: dict[str, object], message: str
) -> None:
    answer = http.post(PATH, json={"model": MODEL, **fields})
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(NODE + message)


def test_a_body_that_is_no_request_is_refused_before(http: httpx.Client) -> None:
    assert http.post(PATH, content=b"{").status_code == 412
    assert http.post(PATH, json={"input": "a."}).status_code == 412
    assert http.post(PATH, json={"model": "nobody", "input": "a."}).status_code == 404
