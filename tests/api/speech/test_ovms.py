"""With OVMS's profile, transcriptions have OVMS's objects and events."""

import json
from collections.abc import Iterator

import httpx
import openai
import pytest

from ouzel.config import ServerConfig
from tests.api.requests import read_events
from tests.api.speech.listening import MODEL, ListeningServer, listening_server
from tests.api.speech.posting import WORDS, Fields, post_sound

PATH = "/v3/audio/transcriptions"
TRANSLATIONS = "/v3/audio/translations"
SEGMENTS = [
    {"text": " one two", "start": 0.0, "end": 2.0},
    {"text": " three", "start": 2.0, "end": 4.0},
]


@pytest.fixture(scope="module")
def ovms() -> Iterator[ListeningServer]:
    with listening_server(config=ServerConfig(profile="ovms")) as listening:
        yield listening


@pytest.fixture(scope="module")
def http(ovms: ListeningServer) -> Iterator[httpx.Client]:
    with ovms.server.client() as http:
        yield http


@pytest.mark.parametrize("path", [PATH, TRANSLATIONS, "/v1/audio/transcriptions"])
def test_the_answer_is_the_text_of_the_model(http: httpx.Client, path: str) -> None:
    answer = post_sound(http, {"model": MODEL, "temperature": "1.5"}, path=path)
    assert answer.json() == {"text": " one two three"}


@pytest.mark.parametrize(
    ("granularities", "keys"),
    [
        (["segment"], ["text", "segments"]),
        (["word"], ["text", "words"]),
        (["segment", "word"], ["text", "words", "segments"]),
    ],
)
def test_times_need_no_form(http: httpx.Client, granularities: list[str], keys: list[str]) -> None:
    fields: Fields = {"timestamp_granularities[]": granularities}
    answer = post_sound(http, fields, path=PATH).json()
    assert list(answer) == keys
    if "segments" in answer:
        assert answer["segments"] == SEGMENTS
    if "words" in answer:
        assert answer["words"][0] == {"word": " one", "start": 0.0, "end": 0.9}


def test_a_stream_has_no_mark_at_its_end(http: httpx.Client) -> None:
    events = read_events(post_sound(http, {"stream": "true"}, path=PATH))
    assert [json.loads(event) for event in events] == [
        {"type": "transcript.text.delta", "delta": " one", "logprobs": []},
        {"type": "transcript.text.delta", "delta": " two", "logprobs": []},
        {"type": "transcript.text.delta", "delta": " three", "logprobs": []},
        {"type": "transcript.text.done", "text": " one two three", "logprobs": []},
    ]


def test_the_client_reads_a_stream(ovms: ListeningServer) -> None:
    with openai.OpenAI(base_url=f"{ovms.url}/v3", api_key="none", timeout=None) as client:
        stream = client.audio.transcriptions.create(file=WORDS, model=MODEL, stream=True)
        assert [event.type for event in stream][-1] == "transcript.text.done"


def test_other_forms_are_those_of_openai(http: httpx.Client) -> None:
    answer = post_sound(http, {"response_format": "text"}, path=PATH)
    assert answer.text == "one two three\n"


def test_an_error_names_the_node(http: httpx.Client) -> None:
    answer = post_sound(http, {"language": "klingon"}, path=PATH)
    assert answer.status_code == 400
    assert 'node "S2tExecutor" failed: language must be' in answer.json()["error"]
