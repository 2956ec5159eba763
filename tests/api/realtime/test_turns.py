"""Turns of speech become text: at pauses, or where the client commits them."""

import asyncio
from contextlib import suppress

import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.transcription.live.speech_probability import LiveEnergyDetector
from tests.api.realtime.speaking import (
    RATE,
    Speaker,
    TurnRepeater,
    live_server,
    make_silence,
    make_tone,
    speak,
)

TRANSCRIPTION = "conversation.item.input_audio_transcription"


def test_a_pause_ends_a_turn_and_its_text_follows(speaker: Speaker, repeater: TurnRepeater) -> None:
    repeater.texts.append("one two three")
    speaker.append(np.concatenate([make_silence(1), make_tone(1), make_silence(1)]))
    events = speaker.until(f"{TRANSCRIPTION}.completed")
    assert [event.type for event in events] == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        *[f"{TRANSCRIPTION}.delta"] * 3,
        f"{TRANSCRIPTION}.completed",
    ]
    started, stopped, committed, added, *_, completed = events
    item_id = started.item_id
    ids = {stopped.item_id, committed.item_id, added.item.id, completed.item_id}
    assert ids == {item_id}
    assert started.audio_start_ms == pytest.approx(700, abs=80)
    assert stopped.audio_end_ms == pytest.approx(2500, abs=100)
    assert [event.delta for event in events[5:8]] == ["one", " two", " three"]
    assert completed.transcript == "one two three"
    assert (completed.usage.type, completed.usage.output_tokens) == ("tokens", 3)
    length_s = (stopped.audio_end_ms - started.audio_start_ms) / 1000
    assert repeater.durations_s == [pytest.approx(length_s, abs=0.01)]


def test_small_pieces_give_the_same_turns(speaker: Speaker, repeater: TurnRepeater) -> None:
    repeater.texts += ["one", "two"]
    sound = np.concatenate([make_silence(0.5), make_tone(0.6), make_silence(0.8)] * 2)
    for begin in range(0, len(sound), RATE // 10):
        speaker.append(sound[begin : begin + RATE // 10])
    first = speaker.until(f"{TRANSCRIPTION}.completed")
    second = speaker.until(f"{TRANSCRIPTION}.completed")
    assert (first[-1].transcript, second[-1].transcript) == ("one", "two")
    [committed] = [
        event
        for event in [*first, *second]
        if event.type == "input_audio_buffer.committed" and event.previous_item_id
    ]
    assert committed.previous_item_id == first[-1].item_id
    assert repeater.durations_s[0] == pytest.approx(repeater.durations_s[1], abs=0.1)


def test_the_steady_noise_of_a_microphone_is_no_speech(speaker: Speaker) -> None:
    noise = np.random.default_rng(1).normal(0, 0.003, 2 * RATE)
    speaker.append(noise)
    speaker.send("input_audio_buffer.clear")
    assert speaker.event().type == "input_audio_buffer.cleared"


def test_a_client_commits_turns_itself(speaker: Speaker, repeater: TurnRepeater) -> None:
    speaker.update(turn_detection=None)
    updated = speaker.event()
    assert updated.session.audio.input.turn_detection is None
    speaker.append(make_tone(0.75))
    speaker.append(make_silence(0.75))
    speaker.send("input_audio_buffer.commit")
    events = speaker.until(f"{TRANSCRIPTION}.completed")
    assert events[0].type == "input_audio_buffer.committed"
    assert events[-1].transcript == "one two"
    assert repeater.durations_s == [pytest.approx(1.5)]


@pytest.mark.parametrize("num_bytes", [0, 1, 4000])
def test_a_short_buffer_is_not_committed(speaker: Speaker, num_bytes: int) -> None:
    speaker.update(turn_detection=None)
    speaker.event()
    speaker.append(np.zeros(num_bytes // 2))
    speaker.send("input_audio_buffer.commit", event_id="mine")
    told = speaker.error()
    assert (told["code"], told["event_id"]) == ("input_audio_buffer_commit_empty", "mine")
    assert "at least 100 ms" in str(told["message"])


def test_a_cleared_buffer_is_empty(speaker: Speaker, repeater: TurnRepeater) -> None:
    speaker.update(turn_detection=None)
    speaker.event()
    speaker.append(make_tone(3))
    speaker.send("input_audio_buffer.clear")
    assert speaker.event().type == "input_audio_buffer.cleared"
    speaker.append(make_tone(0.5))
    speaker.send("input_audio_buffer.commit")
    speaker.until(f"{TRANSCRIPTION}.completed")
    assert repeater.durations_s == [pytest.approx(0.5)]


def test_a_commit_during_speech_ends_the_turn(speaker: Speaker, repeater: TurnRepeater) -> None:
    speaker.append(np.concatenate([make_silence(1), make_tone(1)]))
    started = speaker.event()
    speaker.send("input_audio_buffer.commit")
    events = speaker.until(f"{TRANSCRIPTION}.completed")
    assert events[0].type == "input_audio_buffer.committed"
    assert events[0].item_id == started.item_id
    assert repeater.durations_s == [pytest.approx(1.3, abs=0.1)]


def test_log_probabilities_are_included(speaker: Speaker) -> None:
    session = {
        "type": "transcription",
        "audio": {"input": {"turn_detection": None}},
        "include": ["item.input_audio_transcription.logprobs"],
    }
    speaker.send("session.update", session=session)
    speaker.event()
    speaker.append(make_tone(0.5))
    speaker.send("input_audio_buffer.commit")
    *_, delta, completed = speaker.until(f"{TRANSCRIPTION}.completed")
    assert delta.logprobs[0].logprob == -0.5
    assert len(completed.logprobs) == 2


def test_a_turn_that_fails_leaves_the_session_open(
    speaker: Speaker, repeater: TurnRepeater
) -> None:
    repeater.texts += ["fail", "three"]
    speaker.update(turn_detection=None)
    speaker.event()
    for _ in range(2):
        speaker.append(make_tone(0.5))
        speaker.send("input_audio_buffer.commit")
    events = speaker.until(f"{TRANSCRIPTION}.failed")
    assert events[-1].error.code == "engine_failed"
    assert events[-1].item_id == events[0].item_id
    assert speaker.until(f"{TRANSCRIPTION}.completed")[-1].transcript == "three"


def test_without_transcription_turns_are_items_only(
    speaker: Speaker, repeater: TurnRepeater
) -> None:
    speaker.update(turn_detection=None, transcription=None)
    speaker.event()
    speaker.append(make_tone(0.5))
    speaker.send("input_audio_buffer.commit")
    speaker.until("conversation.item.done")
    speaker.send("input_audio_buffer.clear")
    assert speaker.event().type == "input_audio_buffer.cleared"
    assert repeater.durations_s == []


@pytest.mark.parametrize("form", ["audio/pcmu", "audio/pcma"])
def test_sound_of_telephones_is_read(speaker: Speaker, repeater: TurnRepeater, form: str) -> None:
    speaker.update(turn_detection=None, format={"type": form})
    updated = speaker.event()
    assert updated.session.audio.input.format.type == form
    speaker.send("input_audio_buffer.append", audio="1dXV" * 2000)  # 6000 bytes at 8 kHz
    speaker.send("input_audio_buffer.commit")
    speaker.until(f"{TRANSCRIPTION}.completed")
    assert repeater.durations_s == [pytest.approx(0.75)]


class _Watched(LiveEnergyDetector):
    """Counts the pieces that it rates, and the pieces on an event loop."""

    num_pieces = num_blocking = 0

    def push(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        _Watched.num_pieces += 1
        with suppress(RuntimeError):  # no event loop runs in this thread
            asyncio.get_running_loop()
            _Watched.num_blocking += 1
        return super().push(samples)


def test_no_piece_is_rated_on_the_event_loop() -> None:
    """A detector that is a model waits for other sounds."""
    with live_server(make_activity=_Watched) as (listening, _), speak(listening) as speaker:
        speaker.event()
        for _ in range(3):
            speaker.append(make_silence(0.02))  # 960 bytes
        speaker.send("input_audio_buffer.clear")
        speaker.event()
    assert (_Watched.num_pieces, _Watched.num_blocking) == (3, 0)
