"""A session of transcription is opened, changed, limited and closed."""

import json
import logging
import threading
from base64 import b64encode

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from ouzel.config import LimitsConfig, ServerConfig
from tests.api.realtime.speaking import (
    Speaker,
    TurnRepeater,
    live_server,
    make_silence,
    make_tone,
    speak,
)
from tests.api.requests import wait_until
from tests.api.server_setup import ServerSetup
from tests.api.speech.listening import MODEL, ListeningServer

COMPLETED = "conversation.item.input_audio_transcription.completed"
FAILED = "conversation.item.input_audio_transcription.failed"


def commit_tone(speaker: Speaker) -> None:
    speaker.append(make_tone(0.5))
    speaker.send("input_audio_buffer.commit")


def test_a_session_tells_its_defaults(live: tuple[ListeningServer, TurnRepeater]) -> None:
    with speak(live[0], model=MODEL) as speaker:
        session = speaker.event().session
    assert session.type == "transcription"
    sound = session.audio.input
    assert (sound.format.type, sound.format.rate) == ("audio/pcm", 24000)
    assert sound.transcription.model == MODEL
    vad = sound.turn_detection
    assert (vad.type, vad.threshold, vad.prefix_padding_ms, vad.silence_duration_ms) == (
        "server_vad",
        0.5,
        300,
        500,
    )


def test_an_update_changes_the_fields_that_it_has(speaker: Speaker, repeater: TurnRepeater) -> None:
    speaker.update(transcription={"model": MODEL, "prompt": "Ouzel"}, turn_detection=None)
    speaker.event()
    speaker.update(transcription={"language": "german"}, noise_reduction={"type": "near_field"})
    sound = speaker.event().session.audio.input
    assert (sound.transcription.model, sound.transcription.prompt) == (MODEL, "Ouzel")
    assert (sound.turn_detection, sound.noise_reduction.type) == (None, "near_field")
    commit_tone(speaker)
    speaker.until(COMPLETED)
    [options] = repeater.options
    assert (options.language, options.prompt, options.num_logprobs) == ("de", "Ouzel", None)


@pytest.mark.parametrize(
    ("audio_input", "param"),
    [
        ({"format": {"type": "audio/pcm", "rate": 8000}}, "format.rate"),
        ({"turn_detection": {"type": "semantic_vad"}}, "turn_detection.type"),
        ({"turn_detection": {"type": "server_vad", "threshold": 2}}, "turn_detection.threshold"),
        ({"transcription": {"language": "klingon"}}, "transcription.language"),
        ({"transcription": {"keywords": ["Ouzel"]}}, "transcription.keywords"),
    ],
)
def test_an_invalid_update_changes_nothing(
    speaker: Speaker, audio_input: dict[str, object], param: str
) -> None:
    speaker.update(**audio_input)
    told = speaker.error()
    assert (told["type"], told["param"]) == (
        "invalid_request_error",
        f"session.audio.input.{param}",
    )
    speaker.update(turn_detection=None)
    assert speaker.event().session.audio.input.format.rate == 24000


def test_speech_to_speech_is_refused(speaker: Speaker) -> None:
    session = {"type": "realtime", "instructions": "Be brief."}
    speaker.send("session.update", session=session, event_id="first")
    told = speaker.error()
    assert (told["param"], told["event_id"]) == ("session.type", "first")
    assert "no speech-to-speech sessions" in str(told["message"])
    speaker.send("response.create")
    assert "no responses" in str(speaker.error()["message"])


def test_an_unknown_model_is_an_error_of_the_update(speaker: Speaker) -> None:
    speaker.update(transcription={"model": "whisper-of-nobody"})
    assert speaker.error()["code"] == "model_not_found"


@pytest.mark.parametrize(
    "message",
    [
        "no JSON",
        "[]",
        '{"type": "input_audio_buffer.append"}',
        '{"type": "input_audio_buffer.append", "audio": "?"}',
        '{"type": "input_audio_buffer.commit", "event_id": 1}',
        '{"type": "session.update", "session": 1}',
        '{"type": "unknown"}',
    ],
)
def test_an_unreadable_message_is_an_error_event(speaker: Speaker, message: str) -> None:
    speaker.connection.send_raw(message)
    assert speaker.error()["type"] == "invalid_request_error"
    speaker.send("input_audio_buffer.clear")
    assert speaker.event().type == "input_audio_buffer.cleared"


@pytest.mark.parametrize(
    ("query", "status"),
    [("model=nobody", 404), ("intent=conversation", 400), ("model=talker", 400)],
)
def test_a_session_that_cannot_be_is_refused_before_it_opens(query: str, status: int) -> None:
    with live_server(further=(ServerSetup(names=("talker",)),)) as (listening, _):
        url = f"ws{listening.url.removeprefix('http')}/v1/realtime?{query}"
        with pytest.raises(InvalidStatus) as raised, connect(url):
            pass
        assert raised.value.response.status_code == status
        assert json.loads(raised.value.response.body or b"")["error"]["message"]


def test_a_key_is_needed() -> None:
    with live_server(config=ServerConfig(api_key=("sk-right",))) as (listening, _):
        with pytest.raises(InvalidStatus) as raised, speak(listening, key="sk-wrong"):
            pass
        assert raised.value.response.status_code == 401
        with speak(listening, key="sk-right") as speaker:
            assert speaker.event().type == "session.created"


def test_a_page_sends_its_key_as_a_protocol() -> None:
    with live_server(config=ServerConfig(api_key=("sk-right",))) as (listening, _):
        url = f"ws{listening.url.removeprefix('http')}/v1/realtime?intent=transcription"
        right, wrong = (
            [Subprotocol("realtime"), Subprotocol(f"openai-insecure-api-key.{key}")]
            for key in ("sk-right", "sk-wrong")
        )
        with connect(url, subprotocols=right) as connection:
            assert connection.subprotocol == "realtime"
            assert json.loads(connection.recv())["type"] == "session.created"
        with pytest.raises(InvalidStatus), connect(url, subprotocols=wrong):
            pass
        foreign = Origin("https://evil.example.org")
        with (
            pytest.raises(InvalidStatus) as raised,
            connect(url, subprotocols=right, origin=foreign),
        ):
            pass
        assert raised.value.response.status_code == 403


def test_a_full_buffer_refuses_more() -> None:
    with (
        live_server(limits=LimitsConfig(max_body_bytes=64_000)) as (listening, repeater),
        speak(listening) as speaker,
    ):
        speaker.update(turn_detection=None)
        speaker.until("session.updated")
        for _ in range(4):
            speaker.append(make_tone(0.5))
        speaker.append(make_tone(0.5), event_id="fifth")
        told = speaker.error()
        assert told["event_id"] == "fifth"
        assert "must be <= 2 s long, given 2.5 s" in str(told["message"])
        speaker.send("input_audio_buffer.commit")
        speaker.until(COMPLETED)
        assert repeater.durations_s == [pytest.approx(2)]


def test_a_turn_without_a_pause_ends_at_the_limit() -> None:
    with (
        live_server(limits=LimitsConfig(max_body_bytes=64_000)) as (listening, repeater),
        speak(listening) as speaker,
    ):
        speaker.append(make_silence(0.4))
        for _ in range(6):
            speaker.append(make_tone(0.5))
        speaker.until(COMPLETED)
        assert repeater.durations_s == [pytest.approx(2, abs=0.03)]


def test_a_full_server_fails_the_turn(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    limits = LimitsConfig(max_queued_requests=0)
    with live_server(limits=limits, options={"max_num_seqs": 1}) as (listening, repeater):
        repeater.texts.append("wait")
        with speak(listening) as busy, speak(listening) as other:
            for speaker in (busy, other):
                speaker.update(turn_detection=None)
                speaker.until("session.updated")
            commit_tone(busy)
            wait_until(lambda: repeater.num_waiting == 1)
            commit_tone(other)
            failed = other.until(FAILED)[-1]
            assert (failed.error.type, failed.error.code) == ("rate_limit_error", "overloaded")
        wait_until(lambda: repeater.num_aborted == 1)
    assert "transcription /v1/realtime 429" in caplog.text
    wait_until(lambda: "transcription /v1/realtime 499 model=org/listener" in caplog.text)


def test_sound_in_memory_counts_as_bytes_of_bodies() -> None:
    limits = LimitsConfig(max_body_bytes=2**20, max_body_bytes_total=2**20)
    half_second = np.zeros(12_000)  # 16 kB in memory
    with (
        live_server(limits=limits) as (listening, _),
        speak(listening) as one,
        speak(listening) as two,
    ):
        for speaker in (one, two):
            speaker.update(turn_detection=None)
            speaker.until("session.updated")
        for _ in range(50):
            one.append(half_second)
        one.update(turn_detection=None)
        one.until("session.updated")
        for _ in range(30):
            two.append(half_second)
        assert two.error()["code"] == "overloaded"


def test_a_session_ends_with_its_lifetime() -> None:
    with (
        live_server(limits=LimitsConfig(websocket_lifetime_s=0.5)) as (listening, _),
        speak(listening) as speaker,
    ):
        speaker.event()
        assert speaker.error()["code"] == "websocket_connection_limit_reached"
        with pytest.raises(ConnectionClosed) as closed:
            speaker.event()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1000


def test_a_server_that_stops_finishes_the_turn() -> None:
    with live_server() as (listening, repeater), speak(listening) as speaker:
        repeater.texts.append("one " * 20)
        speaker.update(turn_detection=None)
        speaker.until("session.updated")
        commit_tone(speaker)
        speaker.until("conversation.item.done")
        stopping = threading.Thread(target=listening.server.stop)
        stopping.start()
        assert speaker.until(COMPLETED)[-1].transcript.startswith("one")
        with pytest.raises(ConnectionClosed) as closed:
            speaker.event()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012
        stopping.join()


def test_binary_messages_are_refused(live: tuple[ListeningServer, TurnRepeater]) -> None:
    url = f"ws{live[0].url.removeprefix('http')}/v3/realtime"
    with connect(url) as connection:
        connection.recv()
        connection.send(b64encode(b"sound"))
        assert "must be text" in str(connection.recv())


def test_many_turns_wait(speaker: Speaker, repeater: TurnRepeater) -> None:
    repeater.texts.append("wait")
    speaker.update(turn_detection=None)
    speaker.event()
    for _ in range(66):
        commit_tone(speaker)
    failed = speaker.until(FAILED)[-1]
    assert "64 turns of this session wait" in failed.error.message
