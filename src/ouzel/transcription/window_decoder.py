"""Decodes windows: greedily first, then with higher temperatures while the text is unlikely."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from ouzel.checkpoint.speech_tokens import SpeechTokens
from ouzel.tokenizer.base import Tokenizer
from ouzel.transcription.decoding import (
    Decoding,
    choose_likeliest,
    compute_compression_ratio,
    is_probably_silence,
    list_temperatures,
    mean_logprob,
    needs_fallback,
)
from ouzel.transcription.engine_calls import EngineCalls
from ouzel.transcription.options import TranscriptionOptions
from ouzel.transcription.speech_prompts import SpeechPrompts
from ouzel.types.engine_request import AudioInput
from ouzel.types.step_output import PositionLogprobs

# takes the tokens of a window so far with their logprobs, when they are final
Show = Callable[[Sequence[int], Sequence[PositionLogprobs]], None]


@dataclass(frozen=True, slots=True)
class DecodedWindow:
    decoding: Decoding
    no_speech_prob: float


class WindowDecoder:
    """Decodes the windows of one transcription, whose language is known."""

    def __init__(
        self,
        calls: EngineCalls,
        prompts: SpeechPrompts,
        tokenizer: Tokenizer,
        options: TranscriptionOptions,
    ) -> None:
        self.calls = calls
        self.prompts = prompts
        self.tokenizer = tokenizer
        self._options = options

    async def decode(
        self,
        audio: AudioInput,
        earlier: Sequence[int],
        *,
        no_speech_prob: float | None = None,
        show: Show | None = None,
    ) -> DecodedWindow:
        """Decodes a window after the earlier tokens.

        `show` gets the tokens while they come, unless the window may be silent. The probability of
        no speech is computed beside the first decoding if it is not known.
        """
        probability = asyncio.create_task(self._find_no_speech(audio, earlier, no_speech_prob))
        try:
            return await self._decode_with_fallback(audio, earlier, probability, show)
        finally:
            probability.cancel()
            await asyncio.gather(probability, return_exceptions=True)

    async def _find_no_speech(
        self, audio: AudioInput, earlier: Sequence[int], known: float | None
    ) -> float:
        no_speech = self.prompts.tokens.no_speech
        if known is not None or no_speech is None:
            return known or 0.0
        prompt = self.prompts.make_start_prompt(earlier)
        first = await self.calls.guess_first(prompt, audio, no_speech=no_speech)
        return first.no_speech_prob

    async def _decode_with_fallback(
        self,
        audio: AudioInput,
        earlier: Sequence[int],
        probability: "asyncio.Task[float]",
        show: Show | None,
    ) -> DecodedWindow:
        prompt = self.prompts.make_prompt(earlier)
        self.calls.count_window(len(prompt))
        options = self._options
        failed: list[Decoding] = []
        for temperature in list_temperatures(options.temperature, falls_back=options.falls_back):
            decoding = await self._decode_once(prompt, audio, temperature, probability, show)
            if not needs_fallback(decoding, await probability):
                return DecodedWindow(decoding, await probability)
            failed.append(decoding)
        return DecodedWindow(choose_likeliest(failed), await probability)

    async def _decode_once(
        self,
        prompt: list[int],
        audio: AudioInput,
        temperature: float,
        probability: "asyncio.Task[float]",
        show: Show | None,
    ) -> Decoding:
        token_ids: list[int] = []
        logprobs: list[PositionLogprobs] = []
        steps = self.calls.decode(prompt, audio, self.prompts, temperature)
        async with aclosing(steps) as outputs:
            async for output in outputs:
                self.calls.count_output(len(output.token_ids))
                token_ids += output.token_ids
                logprobs += output.logprobs
                is_shown = show is not None and probability.done()
                if is_shown and not is_probably_silence(probability.result()):
                    assert show is not None
                    show(_without_end(token_ids, self.prompts.tokens), logprobs)
        return self._judge(token_ids, logprobs, temperature)

    def _judge(
        self, token_ids: list[int], logprobs: list[PositionLogprobs], temperature: float
    ) -> Decoding:
        tokens = self.prompts.tokens
        kept = _without_end(token_ids, tokens)
        return Decoding(
            token_ids=tuple(kept),
            logprobs=tuple(logprobs[: len(kept)]),
            temperature=temperature,
            avg_logprob=mean_logprob(tuple(logprobs), len(kept)),
            compression_ratio=compute_compression_ratio(
                decode_text(kept, tokens, self.tokenizer).strip()
            ),
        )


def decode_text(token_ids: Sequence[int], tokens: SpeechTokens, tokenizer: Tokenizer) -> str:
    """Returns the text of tokens, without timestamps and other control tokens."""
    text_ids = [token_id for token_id in token_ids if token_id < tokens.end]
    return tokenizer.decode(text_ids, skip_special_tokens=True)


def _without_end(token_ids: list[int], tokens: SpeechTokens) -> list[int]:
    return token_ids[:-1] if token_ids[-1:] == [tokens.end] else token_ids
