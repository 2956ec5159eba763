"""Speaks the text of one HTTP request: sentences, phonemes, engine requests, sound.

At most two engine requests run at the same time: the engine has the next piece when it has spoken
one, and the requests of several clients share it piece by piece.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, aclosing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import EngineFailed, InvalidRequest, TryLater
from ouzel.generation import ServedModel, in_background
from ouzel.generation.generation import raise_if_lost
from ouzel.observability import Metrics
from ouzel.pooling import Pooling, Voice
from ouzel.sampling import SamplingParams
from ouzel.speaking.joints import shape_part
from ouzel.speaking.phonemizer import Phonemizer
from ouzel.speaking.pieces import Break, Marks, Piece, PieceMaker
from ouzel.speaking.sentences import Sentence, split_sentences
from ouzel.speaking.spoken_part import SpokenPart
from ouzel.speaking.time_stretch import stretch
from ouzel.speaking.voice_choice import Mix
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import FinishReason
from ouzel.worker_threads import WorkerThreads

# The model's own speeds. Beyond them a Whisper model reads stretched sound better than the model's:
# at 0.5 and 1.5 without an error, where the model adds and merges sounds (decision 0076).
_SLOWEST, _FASTEST = 0.8, 1.25
_LARGEST_RATE = 2.0  # sound that is stretched to less loses words; the model is faster then
_NO_TOKENS = SamplingParams(max_tokens=0)
_FIRST_PRIORITY = -1  # the first piece of a text goes before later pieces of other texts
_SHARE_OF_PLACES = 2  # one request takes at most the free places divided by this

_numbers = count()


@dataclass(frozen=True, slots=True)
class SpeakingParts:
    """The parts that all runs of a model share."""

    model: ServedModel
    metrics: Metrics
    threads: WorkerThreads
    marks: Marks


class SpeechRun:
    """Speaks one text; `parts()` runs once only."""

    def __init__(
        self,
        shared: SpeakingParts,
        text: str,
        mix: Mix,
        speed: float,
        phonemizer: Phonemizer,
        *,
        request_id: str,
        arrival_s: float,
    ) -> None:
        shape = shared.model.engine.info.speech
        assert shape is not None, "a model that speaks has voices"
        self._sample_rate = shape.sample_rate
        self._shared = shared
        self._engine = shared.model.engine
        self._sentences = split_sentences(text)
        self._speed = speed
        own_speed = max(min(max(speed, _SLOWEST), _FASTEST), speed / _LARGEST_RATE)
        self._voice = Voice(voices=mix, speed=own_speed)
        self._stretch_rate = speed / own_speed
        self._phonemizer = phonemizer
        self._request_id = request_id
        self._arrival_s = arrival_s
        self._counts = shared.metrics.of_engine(0)  # replaced by the engine of the first piece
        self._num_tokens = 0
        self._num_parts = 0
        self._has_begun = False

    async def parts(self) -> AsyncGenerator[SpokenPart, None]:
        """Yields the sound of the pieces in order.

        Raises InvalidRequest if the text has nothing to speak, and the errors of the engine.
        """
        reason = FinishReason.ERROR
        running: deque[asyncio.Task[SpokenPart]] = deque()
        is_last: asyncio.Future[bool] | None = None  # answers for the newest piece
        try:
            with self._admit_second() as num_at_once:
                async with aclosing(self._pieces()) as pieces:
                    async for piece in pieces:
                        if is_last is not None:
                            is_last.set_result(False)
                        if len(running) == num_at_once:
                            yield self._note_part(await running.popleft())
                        # The engine begins now: whether another piece follows is known later.
                        is_last = asyncio.get_running_loop().create_future()
                        running.append(asyncio.create_task(self._speak(piece, is_last)))
                        if len(running) > 1:
                            yield self._note_part(await running.popleft())
                if is_last is not None:
                    is_last.set_result(True)
                while running:
                    yield self._note_part(await running.popleft())
            if not self._num_parts:
                raise InvalidRequest("must have words that can be spoken", field="input")
            reason = FinishReason.STOP
        except (asyncio.CancelledError, GeneratorExit):
            reason = FinishReason.ABORT
            raise
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self._note_end(reason)

    @contextmanager
    def _admit_second(self) -> Iterator[int]:
        """Takes a place for a second engine request, and tells how many requests have a place.

        The HTTP request has the first place. The server may drain, or have no further place.
        """
        num_places = 1
        with ExitStack() as stack:
            if self._engine.num_free >= _SHARE_OF_PLACES:
                with suppress(TryLater):
                    stack.enter_context(self._engine.admit(1))
                    num_places = 2
            yield num_places

    async def _pieces(self) -> AsyncGenerator[Piece, None]:
        maker = PieceMaker(self._shared.marks, self._engine.info.max_model_len)
        while (sentence := await self._shared.threads.run(self._take_sentence)) is not None:
            token_ids = await self._shared.threads.run(partial(self._encode, sentence.text))
            for piece in maker.add(token_ids, _name_break(sentence)):
                yield piece
        for piece in maker.finish():
            yield piece

    def _take_sentence(self) -> Sentence | None:
        return next(self._sentences, None)

    def _encode(self, text: str) -> tuple[int, ...]:
        phonemes = " ".join(self._phonemizer.to_phonemes(text).split())
        return tuple(self._shared.model.tokenizer.encode(phonemes, add_special_tokens=False))

    async def _speak(self, piece: Piece, is_last: asyncio.Future[bool]) -> SpokenPart:
        """Speaks a piece, with a pause unless it is the last one of the text."""
        is_first, self._has_begun = not self._has_begun, True
        samples = await self._run(piece, is_first=is_first)
        following = None if await is_last else piece.following
        shape = partial(self._shape, samples, following)
        shaped = await self._shared.threads.run(shape)
        return SpokenPart(shaped, len(piece.token_ids))

    def _shape(self, samples: NDArray[np.float32], following: Break | None) -> NDArray[np.float32]:
        if not np.isfinite(samples).all():
            raise EngineFailed(
                "the sound is not finite: the model's weights or precision are wrong"
            )
        stretched = stretch(samples, self._stretch_rate, self._sample_rate)
        return shape_part(stretched, self._sample_rate, following, self._speed)

    async def _run(self, piece: Piece, *, is_first: bool) -> NDArray[np.float32]:
        request = EngineRequest(
            request_id=f"{self._request_id}.{next(_numbers)}",
            prompt_token_ids=list(piece.token_ids),
            params=_NO_TOKENS,
            priority=_FIRST_PRIORITY if is_first else 0,
            pooling=Pooling(voice=self._voice),
        )
        content: bytes | None = None
        async with aclosing(self._engine.submit(request, self._note_engine)) as steps:
            async for outputs in steps:
                for output in outputs:
                    raise_if_lost(output, self._engine)
                    content = output.vector or content
        if content is None:
            raise EngineFailed("the engine gave no sound for a text")
        return np.frombuffer(content, "<f4")

    def _note_engine(self, number: int) -> None:
        if not self._num_parts:
            self._counts = self._shared.metrics.of_engine(number)

    def _note_part(self, part: SpokenPart) -> SpokenPart:
        if not self._num_parts and not in_background.get():  # nobody waits for it
            self._counts.first_token(time.perf_counter() - self._arrival_s)
        self._num_parts += 1
        self._num_tokens += part.num_tokens
        return part

    def _note_end(self, reason: FinishReason) -> None:
        self._counts.choice_finished(reason.value)
        self._counts.prompt_computed(num_prompt_tokens=self._num_tokens, num_cached_tokens=0)


def _name_break(sentence: Sentence) -> Break:
    if sentence.ends_line:
        return Break.LINE
    return Break.SENTENCE if sentence.ends_sentence else Break.CLAUSE
