"""A sound goes from window to window as openai-whisper's does."""

from ouzel.transcription import TranscriptionOptions
from tests.transcription.speech import (
    EN,
    END,
    NO_SPEECH,
    NO_TIMESTAMPS,
    PREVIOUS,
    START,
    TRANSCRIBE,
    Attempt,
    Script,
    find_begin,
    list_times,
    make_sound,
    say,
    transcribe,
)


async def test_adjacent_timestamps_cut_segments_and_the_next_window_begins_at_the_last_one() -> (
    None
):
    script = Script(
        {
            0: [Attempt(say(0.0, " One.", 4.0, 4.0, " Two.", 9.0, 9.0, " Cut of"))],
            900: [Attempt(say(0.0, " Three.", 21.0))],
        }
    )
    result = await transcribe(script, make_sound(30))
    assert list_times(result) == [(0, 4, " One."), (4, 9, " Two."), (9, 30, " Three.")]
    assert [segment.seek for segment in result.segments] == [0, 0, 900]
    assert [segment.id for segment in result.segments] == [0, 1, 2]
    assert result.segments[1].token_ids == tuple(say(4.0, " Two.", 9.0))
    assert result.text == "One. Two. Three."


async def test_a_single_timestamp_at_the_end_ends_the_window() -> None:
    script = Script(
        {
            0: [Attempt(say(0.0, " One.", 4.0, 4.0, " Two.", 9.0))],
            3000: [Attempt(say(0.0, " Three.", 1.0))],
        }
    )
    result = await transcribe(script, make_sound(31))
    assert list_times(result) == [(0, 4, " One."), (4, 9, " Two."), (30, 31, " Three.")]


async def test_a_transcript_without_timestamps_is_one_segment_of_the_whole_window() -> None:
    script = Script({0: [Attempt(say(" One"))], 3000: [Attempt(say(0.0, " two"))]})
    result = await transcribe(script, make_sound(32))
    assert list_times(result) == [(0, 30, " One"), (30, 32, " two")]


async def test_segments_without_duration_or_text_are_left_out() -> None:
    script = Script(
        {0: [Attempt(say(0.0, " One.", 4.0, 4.0, " ", 9.0, 9.0, " No", 9.0, 9.0, " Two", 10.0))]}
    )
    result = await transcribe(script, make_sound(20))
    assert list_times(result) == [(0, 4, " One."), (9, 10, " Two")]
    assert result.text == "One. Two"


async def test_a_window_that_moves_nothing_is_passed() -> None:
    script = Script({0: [Attempt(say(0.0, 0.0))], 3000: [Attempt(say(0.0, " Yes.", 2.0))]})
    result = await transcribe(script, make_sound(32))
    assert list_times(result) == [(30, 32, " Yes.")]


async def test_a_sound_shorter_than_a_frame_has_no_text() -> None:
    script = Script()
    result = await transcribe(script, make_sound(0.005), TranscriptionOptions())
    assert (result.text, result.segments, script.requests) == ("", (), [])


async def test_a_prompt_has_the_segments_before_the_window() -> None:
    first = say(0.0, " One.", 4.0)
    script = Script({0: [Attempt([*first, *say(4.0)])], 400: [Attempt(say(0.0, " Two.", 3.0))]})
    await transcribe(script, make_sound(8))
    start = [START, EN, TRANSCRIBE]
    assert [each.prompt_token_ids for each in script.decodings()] == [
        start,
        [PREVIOUS, *first, *start],
    ]


async def test_a_prompt_has_at_most_half_of_the_model_as_context() -> None:
    script = Script({0: [Attempt(say("x", 1.0))]})
    options = TranscriptionOptions(language="en", prompt="y" * 500)
    await transcribe(script, make_sound(5), options)
    (request,) = script.decodings()
    assert request.prompt_token_ids == [PREVIOUS, *b"y" * 223, START, EN, TRANSCRIBE]
    assert request.params.max_tokens == 448 - 227


async def test_a_prompt_of_the_client_comes_before_the_first_window() -> None:
    script = Script({0: [Attempt(say("x", 1.0))]})
    options = TranscriptionOptions(language="en", prompt=" Names <|im_end|>: ")
    await transcribe(script, make_sound(5), options)
    (request,) = script.decodings()
    prompt = [PREVIOUS, *b" Names <|im_end|>:", START, EN, TRANSCRIBE]
    assert request.prompt_token_ids == prompt


async def test_text_of_a_high_temperature_is_no_context() -> None:
    unlikely = Attempt(say(0.0, " bad", 4.0, 4.0), logprob=-2.0)
    likely = Attempt(say(0.0, " good", 4.0, 4.0))
    script = Script(
        {0: [unlikely, unlikely, unlikely, likely], 400: [Attempt(say(0.0, " Two.", 3.0))]}
    )
    options = TranscriptionOptions(language="en", prompt="Names")
    result = await transcribe(script, make_sound(8), options)
    assert [segment.temperature for segment in result.segments] == [0.6, 0.0]
    assert script.decodings()[-1].prompt_token_ids == [START, EN, TRANSCRIBE]


async def test_without_timestamps_the_model_is_told_so() -> None:
    script = Script({0: [Attempt(say(" One"))]})
    options = TranscriptionOptions(language="en", has_timestamps=False)
    result = await transcribe(script, make_sound(12), options)
    (request,) = script.decodings()
    assert request.prompt_token_ids == [START, EN, TRANSCRIBE, NO_TIMESTAMPS]
    assert request.transcript_rules is not None
    assert request.transcript_rules.first_timestamp is None
    assert list_times(result) == [(0, 12, " One")]


async def test_a_window_without_speech_is_passed() -> None:
    script = Script(
        {
            0: [Attempt(say(0.0, " Thanks for watching.", 2.0), logprob=-1.5)],
            3000: [Attempt(say(0.0, " Yes.", 2.0))],
        },
        no_speech_probs={0: 0.7, 3000: 0.9},  # the second text is likely
    )
    result = await transcribe(script, make_sound(33))
    assert list_times(result) == [(30, 32, " Yes.")]
    assert round(result.segments[0].no_speech_prob, 6) == 0.9
    assert len(script.decodings()) == 2, "silence is not decoded again"


async def test_the_probability_of_no_speech_is_read_before_the_language() -> None:
    script = Script({0: [Attempt(say(" One"))]})
    options = TranscriptionOptions(language="en", prompt="Names")
    await transcribe(script, make_sound(12), options)
    (guess,) = script.guesses()
    assert guess.prompt_token_ids == [PREVIOUS, *b" Names", START]
    assert guess.params.logprob_token_ids == (NO_SPEECH,)


async def test_requests_share_cached_blocks_only_for_the_same_sound_and_key() -> None:
    script = Script({0: [Attempt(say(0.0, " a", 4.0, 4.0))], 400: [Attempt(say(" b"))]})
    await transcribe(script, make_sound(8))
    salts = {find_begin(each): each.cache_salt for each in script.requests}
    assert len(set(salts.values())) == 2
    for each in script.requests:
        assert each.audio is not None
        assert each.cache_salt == f"key::{each.audio.digest.hex()}"
        assert each.cache_salt == salts[find_begin(each)]


async def test_the_rules_are_those_of_the_model() -> None:
    script = Script({0: [Attempt(say(" a"))]})
    await transcribe(script, make_sound(8))
    (request,) = script.decodings()
    rules = request.transcript_rules
    assert rules is not None
    assert (rules.end_token_id, request.eos_token_ids) == (END, (END,))
    assert rules.suppressed == (7, NO_TIMESTAMPS)
    assert rules.suppressed_first == (32,)
    assert (rules.first_timestamp, rules.max_first_timestamp) == (315, 50)


async def test_usage_counts_each_window_once() -> None:
    good, bad = Attempt(say(0.0, " good", 4.0)), Attempt(say(" bad"), logprob=-3.0)
    script = Script({0: [bad, good]})
    result = await transcribe(script, make_sound(8))
    assert result.usage.audio_tokens == 1500
    assert result.usage.text_tokens == 3
    assert result.usage.input_tokens == 1503
    assert result.usage.output_tokens == len(good.token_ids) + len(bad.token_ids) + 2
    assert result.duration_s == result.usage.duration_s == 8
