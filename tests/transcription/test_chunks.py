"""A sound is cut at its pauses into chunks, whose texts come in order."""

import numpy as np

from ouzel.backends.fake import FakeOptions
from ouzel.transcription import TranscriptionOptions, VoiceDetection
from ouzel.transcription.speech_chunks import Stretch, find_chunks
from ouzel.transcription.voice_activity import EnergyDetector, SpeechProbabilities
from tests.transcription.speech import (
    EN,
    PREVIOUS,
    START,
    TRANSCRIBE,
    Attempt,
    Samples,
    Script,
    find_begin,
    find_end,
    list_times,
    make_speech,
    say,
    transcribe,
)

VAD = TranscriptionOptions(language="en", chunking="vad", prompt="a")


def make_probabilities(*parts: tuple[float, float]) -> SpeechProbabilities:
    """Makes frames of 20 ms: pairs of a probability and seconds."""
    values = np.concatenate([np.full(round(each * 50), value) for value, each in parts])
    return SpeechProbabilities(values.astype(np.float32), 320)


def cut(*parts: tuple[float, float]) -> list[tuple[int, int]]:
    num_frames = round(sum(duration_s for _, duration_s in parts) * 100)
    chunks = find_chunks(
        make_probabilities(*parts), VoiceDetection(), num_frames=num_frames, max_frames=3000
    )
    return [(each.begin, each.end) for each in chunks]


def test_pauses_between_chunks_are_left_out() -> None:
    assert cut((0, 2), (1, 20), (0, 5), (1, 20), (0, 3)) == [(170, 2210), (2670, 4710)]


def test_short_stretches_share_a_chunk() -> None:
    assert cut((1, 4), (0, 2), (1, 4), (0, 2), (1, 4)) == [(0, 1600)]


def test_a_short_pause_ends_no_stretch() -> None:
    parts = ((1, 20), (0, 0.1), (1, 20))
    chunks = cut(*parts)
    assert chunks[0][0] == 0
    assert chunks[-1][1] == 4010
    assert all(end - begin <= 3000 for begin, end in chunks)


def test_long_speech_is_split_where_it_is_quietest() -> None:
    assert cut((1, 22), (0.6, 0.1), (1, 20)) == [(0, 2200), (2200, 4210)]


def test_a_sound_without_speech_has_no_chunks() -> None:
    assert cut((0, 10)) == []


def test_speech_is_louder_than_the_noise() -> None:
    sound = make_speech(("pause", 2), ("tone", 3), ("pause", 2))
    speech = EnergyDetector().find_speech(sound)
    is_speech = speech.values >= 0.5
    assert (is_speech[105:245]).all()
    assert not is_speech[:95].any()
    assert not is_speech[255:].any()


def test_a_sound_of_one_level_has_no_pauses() -> None:
    speech = EnergyDetector().find_speech(make_speech(("tone", 3)))
    assert (speech.values >= 0.5).all()


def test_digital_silence_has_no_speech() -> None:
    silence = Samples(np.zeros(16_000, np.float32))
    assert (EnergyDetector().find_speech(silence).values < 0.5).all()
    nothing = Samples(np.zeros(0, np.float32))
    assert len(EnergyDetector().find_speech(nothing).values) == 0


SOUND = make_speech(("pause", 2), ("tone", 20), ("pause", 5), ("tone", 20), ("pause", 3))


def script_chunks(first: list[int], second: list[int], **options: float) -> Script:
    chunks = find_chunks(
        EnergyDetector().find_speech(SOUND), VoiceDetection(), num_frames=5000, max_frames=3000
    )
    begins = [each.begin for each in chunks]
    assert len(begins) == 2
    return Script(
        {begins[0]: [Attempt(first)], begins[1]: [Attempt(second)]},
        options=FakeOptions(**options),  # type: ignore[arg-type]  # fields are checked there
    )


async def test_chunks_come_in_order() -> None:
    # The second chunk is decoded long before the first.
    script = script_chunks(say(0.0, " One" * 30, 20.0), say(0.0, " Two", 20.0))
    result = await transcribe(script, SOUND, VAD)
    first, second = result.segments
    assert result.text == " One".strip() + " One" * 29 + " Two"
    assert 0 < first.start_s < 3 < second.start_s
    assert (first.id, second.id) == (0, 1)


async def test_a_chunk_sees_neither_the_sound_nor_the_text_around_it() -> None:
    script = script_chunks(say(0.0, " One", 20.0), say(0.0, " Two", 20.0))
    await transcribe(script, SOUND, VAD)
    first, second = sorted(script.decodings(), key=find_begin)
    assert find_end(first) < 2500 < find_begin(second)
    prompt = [PREVIOUS, *b" a", START, EN, TRANSCRIBE]
    assert first.prompt_token_ids == second.prompt_token_ids == prompt


async def test_the_rest_of_a_chunk_is_decoded_too() -> None:
    script = script_chunks(say(0.0, " One", 9.0, 9.0), say(0.0, " Three", 20.0))
    begin = min(script.windows)
    script.windows = {**script.windows, begin + 900: [Attempt(say(0.0, " Two", 10.0))]}
    result = await transcribe(script, SOUND, VAD)
    assert [text for _, _, text in list_times(result)] == [" One", " Two", " Three"]


async def test_a_chunk_ends_before_the_next_one() -> None:
    script = script_chunks(say(0.0, " One", 30.0), say(0.0, " Two", 20.0))
    result = await transcribe(script, SOUND, VAD)
    first, second = result.segments
    assert first.end_s < 23 < second.start_s


async def test_one_place_transcribes_one_chunk_after_the_other() -> None:
    script = script_chunks(say(0.0, " One", 20.0), say(0.0, " Two", 20.0), max_num_seqs=1)
    result = await transcribe(script, SOUND, VAD)
    assert result.text == "One Two"
    assert [find_begin(each) for each in script.decodings()] == sorted(script.windows)


async def test_a_sound_of_pauses_has_no_text() -> None:
    script = Script()
    silence = Samples(np.zeros(16_000, np.float32))
    result = await transcribe(script, silence, TranscriptionOptions(chunking="vad"))
    assert (result.text, result.language, script.requests) == ("", "en", [])


def test_a_stretch_ends_with_the_sound() -> None:
    speech = make_probabilities((1, 5))
    chunks = find_chunks(speech, VoiceDetection(), num_frames=499, max_frames=3000)
    assert chunks == [Stretch(0, 499)]
