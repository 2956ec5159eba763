"""The sound of a sentence is sent before the next one is made."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import httpx
import pytest

from ouzel.audio.writing.formats import SpeechFormat
from ouzel.config import LimitsConfig
from tests.api.requests import read_error, read_events, wait_until
from tests.api.speaking.humming import HummingServer, humming_server
from tests.api.speaking.posting import PATH, assert_hums_text, post_text, read_sound
from tests.audio.writing.decoding import RATE, decode_file, find_frequencies

FORMATS = get_args(SpeechFormat)
# The first sentence has a second of sound. The second one waits for the test.
HELD_UP = "a a a a. b wait."


@pytest.fixture
def held_up() -> Iterator[HummingServer]:
    with humming_server() as humming:
        yield humming
        humming.hummer.may_go_on.set()


@pytest.mark.parametrize("format_", FORMATS)
def test_the_first_sentence_comes_before_the_second_one_is_made(
    held_up: HummingServer, format_: SpeechFormat
) -> None:
    body = {"input": HELD_UP, "response_format": format_}
    with held_up.server.client() as http, http.stream("POST", PATH, json=body) as answer:
        assert answer.status_code == 200
        pieces = answer.iter_raw()
        received = next(pieces)
        wait_until(lambda: held_up.hummer.num_waiting == 1)
        first = decode_file(received, format_)
        assert 0.8 < len(first) / RATE <= 1.01
        assert find_frequencies(first, [0.1, 0.7]) == pytest.approx([440], abs=5)
        held_up.hummer.may_go_on.set()
        file = received + b"".join(pieces)
    assert len(decode_file(file, format_)) / RATE == pytest.approx(1.25, abs=0.12)


def test_events_come_with_their_sentence(held_up: HummingServer) -> None:
    body = {"input": HELD_UP, "stream_format": "sse"}
    with held_up.server.client() as http, http.stream("POST", PATH, json=body) as answer:
        lines = answer.iter_lines()
        first = json.loads(next(lines).removeprefix("data: "))
        assert first["type"] == "speech.audio.delta"
        held_up.hummer.may_go_on.set()
        assert [line for line in lines if line][-1] == "data: [DONE]"


@pytest.mark.parametrize("format_", FORMATS)
def test_a_fault_after_the_first_byte_breaks_the_connection(
    http: httpx.Client, humming: HummingServer, format_: SpeechFormat
) -> None:
    body = {"input": "a a a a. fail.", "response_format": format_}
    with http.stream("POST", PATH, json=body) as answer:
        assert answer.status_code == 200
        pieces = answer.iter_raw()
        assert next(pieces)
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            b"".join(pieces)
    assert_hums_text(read_sound(post_text(http, response_format="wav"), "wav"))


def test_a_fault_before_the_first_byte_is_an_error(http: httpx.Client) -> None:
    answer = post_text(http, "fail.")
    assert answer.status_code == 500
    assert read_error(answer)["message"] == "the engine lost this request"
    assert post_text(http, "a. fail.", stream=False).status_code == 500


def test_a_fault_ends_the_events_without_their_mark(http: httpx.Client) -> None:
    *_, last = read_events(post_text(http, "a a. fail.", stream_format="sse"))
    assert json.loads(last)["error"]["message"] == "the engine lost this request"


@pytest.mark.parametrize("fields", [{}, {"stream": False}, {"stream_format": "sse"}])
def test_a_client_that_leaves_aborts_its_speech(
    held_up: HummingServer, fields: dict[str, object]
) -> None:
    with _waiting_post(held_up, fields):
        held_up.server.break_connections()
    wait_until(lambda: held_up.hummer.num_aborted == 1)


@contextmanager
def _waiting_post(humming: HummingServer, fields: dict[str, object]) -> Iterator[None]:
    """Runs the block while a request waits; the block must break its connection."""
    num_waiting = humming.hummer.num_waiting
    with httpx.Client(base_url=humming.url, timeout=None) as http:

        def post() -> None:
            with pytest.raises(httpx.TransportError):
                post_text(http, HELD_UP, fields)

        posting = threading.Thread(target=post, daemon=True)
        posting.start()
        wait_until(lambda: humming.hummer.num_waiting > num_waiting)
        yield
        posting.join()


def test_a_full_queue_refuses_a_request() -> None:
    limits = LimitsConfig(max_queued_requests=0)
    with (
        humming_server(limits=limits, options={"max_num_seqs": 1}) as humming,
        humming.server.client() as http,
        _waiting_post(humming, {}),
    ):
        answer = post_text(http)
        humming.server.break_connections()
    assert (answer.status_code, read_error(answer)["code"]) == (429, "overloaded")


def test_events_that_wait_have_comments() -> None:
    limits = LimitsConfig(stream_keepalive_s=0.01)
    body = {"input": "wait.", "stream_format": "sse"}
    with (
        humming_server(limits=limits) as humming,
        humming.server.client() as http,
        http.stream("POST", PATH, json=body) as answer,
    ):
        assert next(answer.iter_lines()) == ": keep-alive"
        humming.hummer.may_go_on.set()


def test_a_file_that_waits_has_no_comments() -> None:
    limits = LimitsConfig(stream_keepalive_s=0.01)
    with humming_server(limits=limits) as humming, humming.server.client() as http:

        def go_on() -> None:
            wait_until(lambda: humming.hummer.num_waiting == 1)
            threading.Event().wait(0.1)
            humming.hummer.may_go_on.set()

        threading.Thread(target=go_on, daemon=True).start()
        answer = post_text(http, "a. wait b b. c.", response_format="wav")
    assert_hums_text(read_sound(answer, "wav"))


def test_64_requests_at_once_have_their_own_sounds(held_up: HummingServer) -> None:
    texts = [("a. wait. b b. c.", FORMATS[number % len(FORMATS)]) for number in range(64)]
    answers: dict[int, httpx.Response] = {}
    limits = httpx.Limits(max_connections=64)
    with httpx.Client(base_url=held_up.url, timeout=None, limits=limits) as http:

        def post(number: int, text: str, format_: str) -> None:
            answers[number] = post_text(http, text, response_format=format_)

        threads = [
            threading.Thread(target=post, args=(number, text, format_))
            for number, (text, format_) in enumerate(texts)
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: held_up.hummer.num_waiting == 64)
        held_up.hummer.may_go_on.set()
        for thread in threads:
            thread.join()
    assert held_up.hummer.most_running == 64
    for number, (_, format_) in enumerate(texts):
        assert_hums_text(read_sound(answers[number], format_))


def test_a_short_text_is_not_checked_on_the_event_loop(
    http: httpx.Client, humming: HummingServer
) -> None:
    """The first text of a language reads lexicons of megabytes."""
    assert post_text(http, "a.").status_code == 200
    assert humming.hummer.num_blocking == 0
