"""Text comes as soon as it is final, in whole characters; a stream that is closed ends all work."""

import asyncio
from contextlib import aclosing

import pytest

from ouzel.backends.fake import FakeOptions
from ouzel.errors import EngineFailed
from ouzel.transcription import SegmentDone, TextDelta, TranscriptionOptions
from tests.transcription.speech import (
    TRANSCRIBE,
    Attempt,
    Script,
    list_deltas,
    make_sound,
    make_transcriber,
    open_engine,
    run_transcription,
    say,
    transcribe,
)


async def test_a_window_is_shown_when_it_is_accepted() -> None:
    bad = Attempt(say(0.0, " Bad.", 4.0, 4.0), logprob=-2.0)
    script = Script({0: [bad, Attempt(say(0.0, " One.", 4.0, 4.0, " Two.", 9.0))]})
    events = await run_transcription(script, make_sound(9))
    assert list_deltas(events) == ["One.", " Two."]
    assert [type(event) for event in events[:4]] == [TextDelta, SegmentDone] * 2


async def test_without_fallback_a_segment_is_shown_before_its_window_ends() -> None:
    token_ids = say(0.0, " One.", 4.0, 4.0, " Two.", 9.0)
    script = Script({0: [Attempt(token_ids)]})
    options = TranscriptionOptions(language="en", falls_back=False)
    events = await run_transcription(script, make_sound(9), options)
    assert list_deltas(events) == ["One.", " Two."]
    # The order depends on the speed of the reader.
    orders = ([TextDelta, TextDelta, SegmentDone, SegmentDone], [TextDelta, SegmentDone] * 2)
    assert [type(event) for event in events[:4]] in orders


async def test_without_fallback_and_timestamps_each_token_is_shown() -> None:
    script = Script({0: [Attempt(say("  über 日"))]})
    options = TranscriptionOptions(
        language="en", falls_back=False, has_timestamps=False, num_logprobs=0
    )
    events = await run_transcription(script, make_sound(9), options)
    deltas = [event for event in events if isinstance(event, TextDelta)]
    assert "".join(list_deltas(events)) == "über 日"
    assert all("\ufffd" not in delta.text for delta in deltas)
    shown = [each.sampled.token_id for delta in deltas for each in delta.logprobs]
    assert bytes(shown).decode() == "  über 日"


async def test_half_a_character_at_the_end_is_replaced() -> None:
    half = [*say("é "), "é".encode()[0]]
    script = Script({0: [Attempt(half)]})
    for falls_back in (True, False):
        options = TranscriptionOptions(language="en", falls_back=falls_back, has_timestamps=False)
        result = await transcribe(script, make_sound(9), options)
        assert result.text == "é \ufffd"


async def test_a_window_that_may_be_silent_is_not_shown_early() -> None:
    script = Script(
        {0: [Attempt(say(" Thanks."), logprob=-1.5)], 3000: [Attempt(say(" Yes."))]},
        no_speech_probs={0: 0.9},
    )
    options = TranscriptionOptions(language="en", falls_back=False, has_timestamps=False)
    result = await transcribe(script, make_sound(31), options)
    assert result.text == "Yes."


async def test_white_space_alone_is_not_shown() -> None:
    script = Script({0: [Attempt(say("  "))]})
    options = TranscriptionOptions(language="en", falls_back=False, has_timestamps=False)
    events = await run_transcription(script, make_sound(5), options)
    assert len(events) == 1


async def test_logprobs_belong_to_the_text() -> None:
    script = Script({0: [Attempt(say(0.0, " One.", 4.0, 4.0, " cut"))], 400: [Attempt([])]})
    options = TranscriptionOptions(language="en", num_logprobs=0)
    result = await transcribe(script, make_sound(9), options)
    assert bytes(each.sampled.token_id for each in result.logprobs) == b" One."


async def test_closing_the_stream_aborts_all_requests() -> None:
    script = Script(
        {0: [Attempt(say(0.0, " One.", 4.0, 4.0))], 400: [Attempt(say(" b" * 200))]},
        options=FakeOptions(step_s=0.001),
    )
    async with open_engine(script) as engine:
        stream = make_transcriber(engine).transcribe(
            make_sound(9),
            TranscriptionOptions(language="en"),
            request_id="r",
            key_id=None,
            arrival_s=0.0,
        )
        async with aclosing(stream) as events:
            async for _ in events:
                while len(script.decodings()) < 2:
                    await asyncio.sleep(0.001)
                break
        assert engine.open_request_ids == ()
        while (stats := engine.stats()) is not None and stats.num_running:
            await asyncio.sleep(0.001)


async def test_a_failure_of_the_engine_is_raised() -> None:
    script = Script({0: [Attempt(say(" One."))]}, options=FakeOptions(failing_token_id=TRANSCRIBE))
    with pytest.raises(EngineFailed, match="scripted failure"):
        await transcribe(script, make_sound(9))
