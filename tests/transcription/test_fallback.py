"""An unlikely or repeating text is decoded again with higher temperatures."""

import pytest

from ouzel.transcription import TranscriptionOptions
from ouzel.transcription.decoding import compute_compression_ratio, list_temperatures
from tests.transcription.speech import Attempt, Script, make_sound, say, transcribe

GOOD = Attempt(say(0.0, " Good.", 2.0))


def list_used(script: Script) -> list[float]:
    return [round(each.params.temperature, 6) for each in script.decodings()]


async def test_an_unlikely_text_is_decoded_again() -> None:
    script = Script({0: [Attempt(say(0.0, " Bad.", 2.0), logprob=-1.2), GOOD]})
    result = await transcribe(script, make_sound(5))
    assert result.text == "Good."
    assert list_used(script) == [0.0, 0.2]
    assert result.segments[0].temperature == 0.2


async def test_a_repeating_text_is_decoded_again() -> None:
    script = Script({0: [Attempt(say(0.0, " no no no" * 20, 2.0)), GOOD]})
    result = await transcribe(script, make_sound(5))
    assert (result.text, list_used(script)) == ("Good.", [0.0, 0.2])


async def test_the_likeliest_text_stands_if_all_fail() -> None:
    """A likelier text that repeats itself does not count."""
    attempts = [
        Attempt(say(0.0, " Unlikely.", 2.0), logprob=-2.0),
        Attempt(say(0.0, " Likelier.", 2.0), logprob=-1.2),
        Attempt(say(0.0, " no no no" * 20, 2.0), logprob=-1.1),
        *[Attempt(say(0.0, " Last.", 2.0), logprob=-3.0)] * 3,
    ]
    result = await transcribe(Script({0: attempts}), make_sound(5))
    assert result.text == "Likelier."
    assert result.segments[0].temperature == 0.2


async def test_all_temperatures_are_tried() -> None:
    script = Script({0: [Attempt(say(0.0, " Bad.", 2.0), logprob=-1.2)]})
    result = await transcribe(script, make_sound(5))
    assert result.text == "Bad."
    assert list_used(script) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert len(script.guesses()) == 1, "the probability of no speech is the same each time"


async def test_a_temperature_of_the_client_is_the_first() -> None:
    script = Script({0: [Attempt(say(0.0, " Bad.", 2.0), logprob=-1.2)]})
    options = TranscriptionOptions(language="en", temperature=0.5, seed=3)
    await transcribe(script, make_sound(5), options)
    assert list_used(script) == [0.5, 0.7, 0.9]
    assert {each.params.seed for each in script.decodings()} == {3}


async def test_without_fallback_the_first_text_stands() -> None:
    script = Script({0: [Attempt(say(0.0, " Bad.", 2.0), logprob=-1.2), GOOD]})
    options = TranscriptionOptions(language="en", falls_back=False)
    result = await transcribe(script, make_sound(5), options)
    assert (result.text, list_used(script)) == ("Bad.", [0.0])


async def test_the_mean_logprob_counts_the_end_token() -> None:
    script = Script({0: [Attempt(say(" ab"), logprob=-0.5)]})
    result = await transcribe(script, make_sound(5))
    assert result.segments[0].avg_logprob == pytest.approx(-0.5)


async def test_a_beam_search_comes_before_higher_temperatures() -> None:
    script = Script({0: [Attempt(say(0.0, " Bad.", 2.0), logprob=-1.2), GOOD]})
    options = TranscriptionOptions(language="en", beam_size=4)
    await transcribe(script, make_sound(5), options)
    first, second = (each.params.beam_search for each in script.decodings())
    assert first is not None
    assert (first.width, second) == (4, None)


def test_a_temperature_above_the_largest_is_used_once() -> None:
    assert list_temperatures(1.5, falls_back=True) == [1.5]


def test_the_compression_ratio_counts_bytes() -> None:
    assert compute_compression_ratio("") == 0
    assert compute_compression_ratio("ä" * 100) > compute_compression_ratio("ä" * 50) > 2.4
