"""Speaks the texts of all requests for one model."""

import unicodedata
from collections.abc import AsyncGenerator, Callable
from functools import partial
from math import isfinite
from threading import Lock

from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.speaking.options import SpeechOptions
from ouzel.speaking.phonemizer import Phonemizer
from ouzel.speaking.pieces import Marks
from ouzel.speaking.run import SpeakingParts, SpeechRun
from ouzel.speaking.spoken_part import SpokenPart
from ouzel.speaking.voice_choice import Mix, find_language, find_mix
from ouzel.tokenizer.base import Tokenizer
from ouzel.types.engine_info import VoiceShape
from ouzel.worker_threads import WorkerThreads

MIN_SPEED, MAX_SPEED = 0.25, 4.0  # OpenAI's range
_SENTENCE_MARKS, _CLAUSE_MARKS, _OTHER_MARKS = ".!?…", ",;:—", '"()“”'
_WORDLESS = frozenset("PZCM")  # first letters of the categories of marks, spaces and controls
_SPOKEN_MARKS = frozenset("%&@#")

MakePhonemizer = Callable[[str], Phonemizer]


class Speaker:
    """Speaks texts with one model. Its only state are the phonemizers of its languages."""

    def __init__(
        self,
        model: ServedModel,
        metrics: Metrics,
        threads: WorkerThreads,
        make_phonemizer: MakePhonemizer,
    ) -> None:
        """`threads` turn texts into phonemes, and shape the sound.

        `make_phonemizer` raises InvalidRequest for a language that it does not know.
        """
        shape = model.engine.info.speech
        assert shape is not None, "a model that speaks has voices"
        self._shape: VoiceShape = shape
        self._parts = SpeakingParts(model, metrics, threads, _find_marks(model.tokenizer))
        self._make_phonemizer = make_phonemizer
        self._phonemizers: dict[str, Phonemizer] = {}
        self._lock = Lock()

    @property
    def sample_rate(self) -> int:
        return self._shape.sample_rate

    def check(self, options: SpeechOptions) -> None:
        """Raises InvalidRequest with `param` voice, input, speed or language. Thread-safe.

        The first text of a language may read files.
        """
        self._read(options)

    async def speak(
        self,
        options: SpeechOptions,
        *,
        request_id: str,
        key_id: str | None,
        arrival_s: float,
    ) -> AsyncGenerator[SpokenPart, None]:
        """Yields the sound of one part of the text after another.

        The HTTP request holds a place in the engine's queue. Closing the generator aborts all
        requests to the engine. Nothing is cached that API keys could share. Raises the errors of
        `check`, and InvalidRequest with `param` input before the first part if the text has no
        phonemes.
        """
        mix, phonemizer = await self._parts.threads.run(partial(self._read, options))
        run = SpeechRun(
            self._parts,
            options.text,
            mix,
            options.speed,
            phonemizer,
            request_id=request_id,
            arrival_s=arrival_s,
        )
        parts = run.parts()
        try:
            async for part in parts:
                yield part
        finally:
            await parts.aclose()

    def _read(self, options: SpeechOptions) -> tuple[Mix, Phonemizer]:
        """Returns the voices, and the phonemizer of the language. Raises InvalidRequest."""
        _check_text(options.text)
        if not (isfinite(options.speed) and MIN_SPEED <= options.speed <= MAX_SPEED):
            raise InvalidRequest(
                f"must be from {MIN_SPEED} to {MAX_SPEED}, given {options.speed}", field="speed"
            )
        mix = find_mix(options.voice, self._shape.voices)
        language = find_language(options.language, mix, self._shape.voices)
        try:
            return mix, self._find_phonemizer(language)
        except InvalidRequest as error:
            field = "voice" if options.language is None else "language"
            raise error.at(field) from error

    def _find_phonemizer(self, language: str) -> Phonemizer:
        with self._lock:
            if language not in self._phonemizers:
                self._phonemizers[language] = self._make_phonemizer(language)
            return self._phonemizers[language]


def _check_text(text: str) -> None:
    if not text.strip():
        raise InvalidRequest("must not be empty", field="input")
    if not any(_is_spoken(char) for char in text):
        raise InvalidRequest("must have words that can be spoken", field="input")


def _is_spoken(char: str) -> bool:
    """Tells whether a character may have a sound: letters, digits, signs, but no emoji."""
    category = unicodedata.category(char)
    return char in _SPOKEN_MARKS or (category[0] not in _WORDLESS and category not in ("So", "Sk"))


def _find_marks(tokenizer: Tokenizer) -> Marks:
    """Returns the ids of the marks that the model's vocabulary has."""

    def find_ids(chars: str) -> frozenset[int]:
        return frozenset(tokenizer.encode(chars, add_special_tokens=False))

    clauses, sentences = find_ids(_CLAUSE_MARKS), find_ids(_SENTENCE_MARKS)
    spaces = find_ids(" ")
    return Marks(clauses, sentences, spaces, clauses | sentences | spaces | find_ids(_OTHER_MARKS))
