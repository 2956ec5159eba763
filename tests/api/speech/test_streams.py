"""A stream has the text as it is made, and ends with the whole text."""

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import openai
import pytest
from openai.types.audio import (
    TranscriptionTextDeltaEvent,
    TranscriptionTextDoneEvent,
    TranscriptionTextSegmentEvent,
)

from ouzel.config import LimitsConfig
from tests.api.requests import read_error, read_events, wait_until
from tests.api.speech.listening import (
    MODEL,
    ListeningServer,
    Repeater,
    WrittenDecoder,
    listening_server,
)
from tests.api.speech.posting import PATH, TRANSLATIONS, WORDS, Fields, post_sound


def test_the_client_reads_deltas_and_the_end(client: openai.OpenAI) -> None:
    events = list(
        client.audio.transcriptions.create(
            file=WORDS, model=MODEL, stream=True, include=["logprobs"]
        )
    )

    *rest, done = events
    assert isinstance(done, TranscriptionTextDoneEvent)
    deltas = [event for event in rest if isinstance(event, TranscriptionTextDeltaEvent)]
    assert len(deltas) == len(rest)
    assert [event.delta for event in deltas] == ["one", " two", " three"]
    assert done.text == "one two three"
    assert done.usage is not None and done.usage.total_tokens == 1506
    assert done.logprobs is not None and len(done.logprobs) == 3
    assert all(event.logprobs and len(event.logprobs) == 1 for event in deltas)


@pytest.mark.parametrize("path", [PATH, TRANSLATIONS])
@pytest.mark.parametrize("spelling", ["true", "True", "1"])
def test_a_stream_ends_with_its_mark(http: httpx.Client, path: str, spelling: str) -> None:
    *events, end = read_events(
        post_sound(http, {"stream": spelling, "response_format": "text"}, path=path)
    )
    kinds = [json.loads(event)["type"] for event in events]
    assert kinds == ["transcript.text.delta"] * 3 + ["transcript.text.done"]
    assert "logprobs" not in json.loads(events[0])
    assert end == "[DONE]"


def test_false_is_no_stream(http: httpx.Client) -> None:
    assert post_sound(http, {"stream": "False"}).json()["text"] == "one two three"


def test_an_error_ends_a_stream_without_its_mark(http: httpx.Client) -> None:
    *events, last = read_events(post_sound(http, {"stream": "true"}, data=b"one two fail"))
    assert len(events) == 2
    assert json.loads(last)["error"]["message"] == "the engine lost this request"
    assert read_error(post_sound(http, {"stream": "true"}, data=b"fail"))["type"] == "server_error"
    assert post_sound(http, data=b"one two fail").status_code == 500


@pytest.mark.parametrize("stream", ["true", "false"])
def test_a_client_that_leaves_aborts_its_transcription(
    listening: ListeningServer, stream: str
) -> None:
    repeater = listening.repeater
    num_aborted = repeater.num_aborted
    with _waiting_post(listening, stream, b"one two wait", repeater):
        listening.server.break_connections()
    wait_until(lambda: repeater.num_aborted > num_aborted)
    wait_until(lambda: listening.decoder.sounds[-1].is_closed)


@pytest.mark.parametrize("stream", ["true", "false"])
def test_a_client_that_leaves_aborts_the_decoding(listening: ListeningServer, stream: str) -> None:
    decoder = listening.decoder
    num_aborted = decoder.num_aborted
    with _waiting_post(listening, stream, b"stall", decoder):
        listening.server.break_connections()
    wait_until(lambda: decoder.num_aborted > num_aborted)


@contextmanager
def _waiting_post(
    listening: ListeningServer, stream: str, data: bytes, place: Repeater | WrittenDecoder
) -> Iterator[None]:
    """Runs the block while a request waits at `place`; the block must break its connection."""
    num_waiting = place.num_waiting
    with httpx.Client(base_url=listening.url, timeout=None) as http:

        def post() -> None:
            with pytest.raises(httpx.TransportError):
                post_sound(http, {"stream": stream}, data=data)

        posting = threading.Thread(target=post, daemon=True)
        posting.start()
        wait_until(lambda: place.num_waiting > num_waiting)
        yield
        posting.join()


def test_a_stream_that_is_decoded_for_long_has_comments() -> None:
    limits = LimitsConfig(stream_keepalive_s=0.01)
    with (
        listening_server(limits=limits) as listening,
        listening.server.client() as http,
        http.stream(
            "POST", PATH, files={"file": ("a", b"stall")}, data={"stream": "true"}
        ) as answer,
    ):
        assert next(answer.iter_lines()) == ": keep-alive"


def test_a_full_queue_refuses_a_request() -> None:
    limits = LimitsConfig(max_queued_requests=0)
    with (
        listening_server(limits=limits, options={"max_num_seqs": 1}) as listening,
        listening.server.client() as http,
        _waiting_post(listening, "false", b"wait", listening.repeater),
    ):
        answer = post_sound(http)
        listening.server.break_connections()
    assert (answer.status_code, read_error(answer)["code"]) == (429, "overloaded")


def test_files_that_wait_for_decoding_share_the_budget_of_bodies() -> None:
    limits = LimitsConfig(max_body_bytes=1024, max_body_bytes_total=2**17)
    data = b"stall ".ljust(130_000)
    with (
        listening_server(limits=limits) as listening,
        listening.server.client() as http,
        _waiting_post(listening, "false", data, listening.decoder),
        _waiting_post(listening, "false", data, listening.decoder),
    ):
        answer = post_sound(http, data=data)
        short = post_sound(http)
        listening.server.break_connections()
    assert (answer.status_code, read_error(answer)["code"]) == (429, "overloaded")
    assert "max_body_bytes_total" in read_error(answer)["message"]
    assert short.status_code == 200


def test_the_log_line_has_the_duration_of_the_sound(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel.api.http.request_log")
    post_sound(http)
    wait_until(lambda: bool(caplog.records))
    [record] = caplog.records
    line = record.getMessage()
    assert f"POST {PATH} 200 model={MODEL} prompt_tokens=1503 completion_tokens=3" in line
    assert "finish=stop audio_s=3.0000" in line


def test_a_verbose_stream_has_segments(client: openai.OpenAI) -> None:
    events = list(
        client.audio.transcriptions.create(
            file=WORDS,
            model=MODEL,
            stream=True,
            response_format="verbose_json",
            timestamp_granularities=["word"],
        )
    )

    segments = [event for event in events if isinstance(event, TranscriptionTextSegmentEvent)]
    assert [(each.id, each.start, each.end, each.text) for each in segments] == [
        ("0", 0.0, 2.0, " one two"),
        ("1", 2.0, 4.0, " three"),
    ]
    further = segments[1].model_extra
    assert further is not None and further["duration"] == 3.0
    assert further["words"] == [{"word": "three", "start": 2.0, "end": 2.9}]
    done = events[-1]
    assert isinstance(done, TranscriptionTextDoneEvent) and done.text == "one two three"
    assert done.model_extra == {"task": "transcribe", "language": "german", "duration": 3.0}


def test_a_verbose_stream_of_a_translation_is_english(http: httpx.Client) -> None:
    fields: Fields = {"stream": "true", "response_format": "verbose_json"}
    *events, _ = read_events(post_sound(http, fields, path=TRANSLATIONS))
    *_, segment, done = [json.loads(event) for event in events]
    assert segment["type"] == "transcript.text.segment"
    assert "words" not in segment
    assert (done["task"], done["language"]) == ("translate", "english")
