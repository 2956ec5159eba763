"""Sends the requests of one transcription to the engine, and counts their tokens and times."""

import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from math import exp

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.errors import EngineFailed
from ouzel.generation import ServedModel, in_background
from ouzel.generation.generation import raise_if_lost
from ouzel.observability import Metrics
from ouzel.sampling import BeamSearchParams, SamplingParams
from ouzel.transcription.events import TranscriptionUsage
from ouzel.transcription.options import TranscriptionOptions
from ouzel.transcription.speech_prompts import SpeechPrompts
from ouzel.types.engine_request import AudioInput, EngineRequest
from ouzel.types.step_output import FinishReason, RequestTiming, StepOutput, TokenLogprob

_numbers = count()


@dataclass(frozen=True, slots=True)
class FirstToken:
    """The model's first guess about a window, at the token that begins a transcript."""

    token_id: int
    no_speech_prob: float


class EngineCalls:
    """Sends requests, each about one window of sound. Leaving a call early aborts its request."""

    def __init__(
        self,
        model: ServedModel,
        metrics: Metrics,
        options: TranscriptionOptions,
        *,
        request_id: str,
        key_id: str | None,
        arrival_s: float,
    ) -> None:
        self._ttft_s: float | None = None
        self._timing: RequestTiming | None = None
        self._counts = metrics.of_engine(0)  # replaced by the engine of the first request
        self._num_audio_tokens = 0  # encoder frames; each window counts once
        self._num_text_tokens = 0  # tokens of prompts; the prompt of a window counts once
        self._num_output_tokens = 0  # generated tokens, also of failed decodings
        self._num_cached_tokens = 0
        self._model = model
        self._engine = model.engine
        self._metrics = metrics
        self._options = options
        self._request_id = request_id
        self._salt = model.cache_salt(key_id, "")
        self._arrival_s = arrival_s
        self._has_engine = False
        self._seed = secrets.randbits(63) if options.seed is None else options.seed

    async def guess_first(
        self,
        prompt: Sequence[int],
        audio: AudioInput,
        *,
        no_speech: int | None,
        allowed: Sequence[int] = (),
    ) -> FirstToken:
        """Returns the most likely of the allowed tokens (or of all) after the prompt."""
        params = SamplingParams(
            max_tokens=1,
            temperature=0.0,
            allowed_token_ids=tuple(allowed),
            num_logprobs=0,
            logprob_token_ids=() if no_speech is None else (no_speech,),
        )
        request = self._make_request(prompt, audio, params)
        first: FirstToken | None = None
        async with aclosing(self._run(request)) as outputs:
            async for output in outputs:
                if output.logprobs:
                    shown = (*output.logprobs[0].top, output.logprobs[0].sampled)
                    first = FirstToken(output.token_ids[0], _find_probability(no_speech, shown))
        if first is None:
            raise EngineFailed("the engine gave no token for the begin of a transcript")
        return first

    def decode(
        self,
        prompt: Sequence[int],
        audio: AudioInput,
        prompts: SpeechPrompts,
        temperature: float,
    ) -> AsyncGenerator[StepOutput, None]:
        """Yields the tokens of a transcript with their logprobs; the last may be the end token."""
        options = self._options
        is_search = options.beam_size > 1 and temperature == 0
        beams = BeamSearchParams(width=options.beam_size, early_stopping=True)
        params = SamplingParams(
            max_tokens=prompts.count_new_tokens(len(prompt)),
            temperature=temperature,
            seed=self._seed,
            is_seed_random=options.seed is None,
            num_logprobs=options.num_logprobs or 0,
            beam_search=beams if is_search else None,
        )
        request = self._make_request(prompt, audio, params)
        return self._run(
            msgspec.structs.replace(
                request,
                eos_token_ids=(prompts.tokens.end,),
                transcript_rules=prompts.make_rules(),
            )
        )

    async def align(
        self, prompt: Sequence[int], audio: AudioInput, num_frames: int
    ) -> NDArray[np.float32]:
        """Returns the attention of each prompt token to the first frames of the encoder.

        The result is [tokens, num_frames].
        """
        request = self._make_request(prompt, audio, SamplingParams(max_tokens=0))
        request = msgspec.structs.replace(request, num_aligned_frames=num_frames)
        content: bytes | None = None
        async with aclosing(self._run(request)) as outputs:
            async for output in outputs:
                content = output.vector or content
        if content is None:
            raise EngineFailed("the engine gave no alignment of the words with the sound")
        matrix = np.frombuffer(content, "<f4").reshape(len(prompt), num_frames)
        if not np.isfinite(matrix).all():
            raise EngineFailed(
                "the alignment of the words is not finite: "
                "the model's weights or precision are wrong"
            )
        return matrix

    def count_window(self, num_prompt_tokens: int) -> None:
        """Counts the tokens of a window that is to be decoded."""
        shape = self._engine.info.audio
        self._num_audio_tokens += 0 if shape is None else shape.num_encoder_frames
        self._num_text_tokens += num_prompt_tokens

    def count_output(self, num_tokens: int) -> None:
        if not num_tokens:
            return
        self._num_output_tokens += num_tokens
        self._counts.tokens_generated(num_tokens)
        if self._ttft_s is None:
            self._ttft_s = time.perf_counter() - self._arrival_s
            if not in_background.get():  # nobody waits for it
                self._counts.first_token(self._ttft_s)

    def make_usage(self, duration_s: float) -> TranscriptionUsage:
        return TranscriptionUsage(
            input_tokens=self._num_audio_tokens + self._num_text_tokens,
            audio_tokens=self._num_audio_tokens,
            text_tokens=self._num_text_tokens,
            output_tokens=self._num_output_tokens,
            duration_s=duration_s,
        )

    def note_end(self, reason: FinishReason) -> None:
        """Counts the end of the transcription, and observes its times if it is complete."""
        num_prompt_tokens = self._num_audio_tokens + self._num_text_tokens
        self._counts.choice_finished(reason.value)
        self._counts.prompt_computed(
            num_prompt_tokens=num_prompt_tokens, num_cached_tokens=self._num_cached_tokens
        )
        timing = self._timing
        if reason is not FinishReason.STOP or timing is None or in_background.get():
            return
        e2e_s = time.perf_counter() - self._arrival_s
        decode_s = e2e_s - (e2e_s if self._ttft_s is None else self._ttft_s)
        self._counts.request_completed(
            e2e_s=e2e_s,
            queue_s=timing.queue_s,
            prefill_s=timing.prefill_s,
            decode_s=decode_s,
            token_s=decode_s / max(self._num_output_tokens - 1, 1),
            num_prompt_tokens=num_prompt_tokens,
            num_generated_tokens=self._num_output_tokens,
            n=1,
            max_tokens=self._engine.info.max_model_len // 2,
        )

    def _make_request(
        self, prompt: Sequence[int], audio: AudioInput, params: SamplingParams
    ) -> EngineRequest:
        return EngineRequest(
            request_id=f"{self._request_id}.{next(_numbers)}",
            prompt_token_ids=list(prompt),
            params=params,
            priority=self._options.priority,
            # Rows of tokens depend on the sound, so blocks are shared for the same sound only.
            cache_salt=f"{self._salt}:{audio.digest.hex()}",
            adapter=self._model.adapter,
            audio=audio,
        )

    async def _run(self, request: EngineRequest) -> AsyncGenerator[StepOutput, None]:
        async with aclosing(self._engine.submit(request, self._note_engine)) as steps:
            async for outputs in steps:
                for output in outputs:
                    raise_if_lost(output, self._engine)
                    self._timing = self._timing or output.timing
                    if output.timing is not None and request.transcript_rules is not None:
                        self._num_cached_tokens += output.num_cached_tokens
                    yield output

    def _note_engine(self, number: int) -> None:
        if not self._has_engine:
            self._has_engine = True
            self._counts = self._metrics.of_engine(number)


def _find_probability(token_id: int | None, shown: Sequence[TokenLogprob]) -> float:
    return next((exp(each.logprob) for each in shown if each.token_id == token_id), 0.0)
