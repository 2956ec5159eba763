"""The model detects the language, unless the client names it."""

import pytest

from ouzel.errors import InvalidRequest
from ouzel.transcription import TranscriptionOptions
from tests.transcription.speech import (
    DE,
    EN,
    ENGLISH_TOKENS,
    JA,
    NO_SPEECH,
    PREVIOUS,
    START,
    TRANSCRIBE,
    TRANSLATE,
    Attempt,
    Script,
    make_sound,
    say,
    transcribe,
)


async def test_the_first_window_tells_language_and_silence_at_once() -> None:
    script = Script({0: [Attempt(say(" Ja"), logprob=-0.1)]}, {0: 0.25}, language=DE)
    result = await transcribe(script, make_sound(5), TranscriptionOptions())
    (guess,) = script.guesses()
    assert guess.prompt_token_ids == [START]
    assert guess.params.allowed_token_ids == (EN, DE, JA)
    assert guess.params.logprob_token_ids == (NO_SPEECH,)
    assert script.decodings()[0].prompt_token_ids == [START, DE, TRANSCRIBE]
    assert result.language == "de"
    assert result.segments[0].no_speech_prob == pytest.approx(0.25)


async def test_with_a_prompt_the_silence_is_asked_for_again() -> None:
    script = Script({0: [Attempt(say(" Ja"))]}, language=DE)
    await transcribe(script, make_sound(5), TranscriptionOptions(prompt="a"))
    prompts = [each.prompt_token_ids for each in script.guesses()]
    assert prompts == [[START], [PREVIOUS, *b" a", START]]


@pytest.mark.parametrize("name", ["de", "DE", "de-AT", "German", "german "])
async def test_a_language_has_several_names(name: str) -> None:
    script = Script({0: [Attempt(say(" Ja"))]})
    result = await transcribe(script, make_sound(5), TranscriptionOptions(language=name))
    assert script.decodings()[0].prompt_token_ids == [START, DE, TRANSCRIBE]
    assert result.language == "de"


async def test_a_translation_has_a_task_of_its_own() -> None:
    script = Script({0: [Attempt(say(" Yes"))]})
    options = TranscriptionOptions(language="de", task="translate")
    await transcribe(script, make_sound(5), options)
    assert script.decodings()[0].prompt_token_ids == [START, DE, TRANSLATE]


async def test_a_model_for_english_has_no_language_in_its_prompt() -> None:
    script = Script({0: [Attempt(say(" Yes"))]})
    result = await transcribe(script, make_sound(5), TranscriptionOptions(), ENGLISH_TOKENS)
    assert script.decodings()[0].prompt_token_ids == [START]
    assert [each.params.allowed_token_ids for each in script.guesses()] == [()]
    assert result.language == "en"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (TranscriptionOptions(language="fr"), "language must be one of en, given 'fr'"),
        (TranscriptionOptions(task="translate"), "this model only transcribes"),
    ],
)
async def test_a_model_for_english_refuses_other_tasks(
    options: TranscriptionOptions, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        await transcribe(Script(), make_sound(5), options, ENGLISH_TOKENS)
