"""Declares the parts of the server that turn sound files into text."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Protocol

from ouzel.audio.sound import SampledSound
from ouzel.config.audio import AudioConfig
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.transcription.events import TranscriptionEvent
from ouzel.transcription.live.speech_probability import LiveEnergyDetector, LiveVoiceActivity
from ouzel.transcription.options import TranscriptionOptions


class DecodedSound(SampledSound, Protocol):
    """A sound file in samples; the endpoint closes it."""

    @property
    def duration_s(self) -> float: ...

    def close(self) -> None: ...


class SoundDecoder(Protocol):
    async def decode(self, data: bytes) -> DecodedSound:
        """Decodes a sound file; the caller closes the sound.

        Raises InvalidRequest, Overloaded and EngineUnavailable.
        """
        ...


class SpeechTranscriber(Protocol):
    def transcribe(
        self,
        sound: DecodedSound,
        options: TranscriptionOptions,
        *,
        request_id: str,
        key_id: str | None,
        arrival_s: float,
    ) -> AsyncGenerator[TranscriptionEvent, None]:
        """Yields the events of a transcription. Closing the generator aborts it."""
        ...


MakeTranscriber = Callable[[ServedModel, Metrics], SpeechTranscriber]


@dataclass(frozen=True, slots=True)
class SpeechServices:
    """The decoder of sound files, and a function that makes the transcriber of a model."""

    decoder: SoundDecoder
    make_transcriber: MakeTranscriber
    max_file_bytes: int  # limit of one sound file: max_audio_file_bytes
    max_sound_s: float = AudioConfig().max_audio_seconds
    # makes the detector of speech for a sound that arrives
    make_activity: Callable[[], LiveVoiceActivity] = LiveEnergyDetector
