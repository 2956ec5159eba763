"""Declares the parts of the server that turn sound files into text, and text into sound."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Protocol

from ouzel.audio.sound import SampledSound
from ouzel.config.audio import AudioConfig
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.speaking.options import SpeechOptions
from ouzel.speaking.spoken_part import SpokenPart
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


class SpeechMaker(Protocol):
    """Reads texts aloud with one model."""

    @property
    def sample_rate(self) -> int:
        """Returns the samples per second."""
        ...

    def check(self, options: SpeechOptions) -> None:
        """Raises InvalidRequest with the `param` voice, input, speed or language.

        Many threads call it.
        """
        ...

    def speak(
        self,
        options: SpeechOptions,
        *,
        request_id: str,
        key_id: str | None,
        arrival_s: float,
    ) -> AsyncGenerator[SpokenPart, None]:
        """Yields the sound of each sentence. Closing the generator aborts it."""
        ...


MakeTranscriber = Callable[[ServedModel, Metrics], SpeechTranscriber]
MakeSpeaker = Callable[[ServedModel, Metrics], SpeechMaker]


@dataclass(frozen=True, slots=True)
class SpeechServices:
    """The decoder of sound files, and functions that make the transcriber or speaker of a model."""

    decoder: SoundDecoder
    make_transcriber: MakeTranscriber
    max_file_bytes: int  # limit of one sound file: max_audio_file_bytes
    max_sound_s: float = AudioConfig().max_audio_seconds
    # makes the detector of speech for a sound that arrives
    make_activity: Callable[[], LiveVoiceActivity] = LiveEnergyDetector
    make_speaker: MakeSpeaker | None = None  # None: no voice model can be served
    max_text_characters: int = AudioConfig().max_speech_characters
