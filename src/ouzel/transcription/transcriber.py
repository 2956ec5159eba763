"""Transcribes the sounds of all requests for one speech model."""

from collections.abc import AsyncGenerator

from ouzel.audio.sound import SampledSound
from ouzel.checkpoint.speech_tokens import SpeechTokens
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.transcription.engine_calls import EngineCalls
from ouzel.transcription.events import TranscriptionEvent
from ouzel.transcription.options import TranscriptionOptions
from ouzel.transcription.run import SpeechParts, TranscriptionRun
from ouzel.transcription.voice_activity import EnergyDetector, VoiceActivity
from ouzel.transcription.windows import Features
from ouzel.worker_threads import WorkerThreads

_ENGLISH = "en"


class Transcriber:
    """Transcribes sounds with one model. It has no state of requests."""

    def __init__(
        self,
        model: ServedModel,
        metrics: Metrics,
        tokens: SpeechTokens,
        features: Features,
        threads: WorkerThreads,
        *,
        voice_activity: VoiceActivity | None = None,
    ) -> None:
        """`threads` read sounds and compute features of windows."""
        self._model = model
        self._metrics = metrics
        self._tokens = tokens
        self._parts = SpeechParts(
            model, tokens, features, threads, voice_activity or EnergyDetector()
        )

    def transcribe(
        self,
        sound: SampledSound,
        options: TranscriptionOptions,
        *,
        request_id: str,
        key_id: str | None,
        arrival_s: float,
    ) -> AsyncGenerator[TranscriptionEvent, None]:
        """Yields text as soon as it is final, each segment, and the whole transcription at last.

        The HTTP request holds a place in the engine's queue. Closing the generator aborts all
        requests to the engine. Raises InvalidRequest for a language, a task or word times that the
        model does not have.
        """
        language = self._check(options)
        calls = EngineCalls(
            self._model,
            self._metrics,
            options,
            request_id=request_id,
            key_id=key_id,
            arrival_s=arrival_s,
        )
        return TranscriptionRun(self._parts, options, calls, language).events(sound)

    def _check(self, options: TranscriptionOptions) -> str | None:
        """Returns the code of the language; None: it is to be detected."""
        tokens = self._tokens
        if options.has_words:
            check_word_times(self._model)
        if options.task != "transcribe" and options.task not in tokens.tasks:
            raise InvalidRequest("this model only transcribes: it cannot translate", param="model")
        if options.language is None:
            return None if tokens.is_multilingual else _ENGLISH
        language = tokens.find_language(options.language)
        if language is None:
            known = ", ".join(tokens.languages) or _ENGLISH
            raise InvalidRequest(
                f"must be one of {known}, given {options.language[:100]!r}", field="language"
            )
        return language


def check_word_times(model: ServedModel) -> None:
    """Raises InvalidRequest if the model cannot tell the times of words."""
    audio = model.engine.info.audio
    if audio is None or not audio.can_align:
        raise InvalidRequest(
            "must not have word: this model has no alignment heads",
            field="timestamp_granularities",
        )
