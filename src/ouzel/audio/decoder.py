"""Decodes sound files outside the event loop, in a process with limits."""

import logging
import os
from contextlib import suppress
from importlib.util import find_spec
from tempfile import mkstemp
from threading import Event
from typing import assert_never

import msgspec

from ouzel.audio.decoding_job import Decoded, DecodeSound, Outcome
from ouzel.audio.errors import (
    AudioExtraMissing,
    AudioTooExpensive,
    AudioTooLarge,
    AudioTooLong,
    DamagedAudio,
    EmptyAudio,
    InvalidAudio,
    NoAudioStream,
    UnknownAudioFormat,
)
from ouzel.audio.refusals import RefusalKind, Refused
from ouzel.audio.sound import SAMPLE_BYTES, SAMPLE_RATE, Sound
from ouzel.audio.sound_formats import FORMAT_NAMES, SoundFormat, find_format
from ouzel.config.audio import AudioConfig
from ouzel.errors import EngineUnavailable
from ouzel.limited_process import (
    JobEnded,
    JobLost,
    LimitedProcess,
    Limits,
    MemoryLimitExceeded,
    TimeLimitExceeded,
)
from ouzel.worker_threads import WorkerThreads

logger = logging.getLogger(__name__)

_JOB = "ouzel.audio.decoding_job:create_decoding_job"
_RETRY_AFTER_S = 1.0
_NUM_SHOWN = 8  # bytes of an unknown file in its error


class AudioDecoder:
    """Decodes sound files. It belongs to one event loop."""

    def __init__(self, config: AudioConfig) -> None:
        self._config = config
        self._threads = WorkerThreads("sound files", config.max_audio_decoders)
        max_samples = int(config.max_audio_seconds * SAMPLE_RATE) + SAMPLE_RATE
        limits = Limits(
            wall_s=config.audio_timeout_s,
            memory_bytes=config.max_audio_memory_bytes,
            max_file_bytes=max_samples * SAMPLE_BYTES,
        )
        self._process = LimitedProcess(_JOB, {}, limits)

    async def decode(self, data: bytes) -> Sound:
        """Decodes the bytes of a sound file; the caller closes the sound.

        Raises InvalidAudio, and EngineUnavailable if the process or its files are missing.
        """
        max_bytes = self._config.max_audio_file_bytes
        if len(data) > max_bytes:
            raise AudioTooLarge(len(data), max_bytes)
        if not data:
            raise EmptyAudio("a file of 0 bytes")
        format_ = find_format(data)
        if format_ is None:
            raise UnknownAudioFormat(
                f"must be a sound file of the formats {FORMAT_NAMES}, given bytes that begin with "
                f"{data[:_NUM_SHOWN].hex(' ')}"
            )
        if format_ is not SoundFormat.WAV and find_spec("av") is None:
            raise AudioExtraMissing(format_.name)
        decoding = _Decoding()
        try:
            return await self._threads.run(lambda: decoding.keep(self._decode(data, format_)))
        except BaseException:
            decoding.abandon()
            raise

    def start(self) -> None:
        """Starts the process without waiting, so that the first file is decoded sooner."""
        self._process.start()

    def close(self) -> None:
        """Ends the threads and the process without waiting for running work."""
        self._threads.close()
        self._process.close()

    def _decode(self, data: bytes, format_: SoundFormat) -> Sound:
        """Decodes in this thread. The files have names until the process has opened them."""
        paths = list[str]()
        try:
            source_fd, source = mkstemp(prefix="ouzel-sound-")
            paths.append(source)
            with open(source_fd, "wb", buffering=0) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
            target_fd, target = mkstemp(prefix="ouzel-sound-")
            paths.append(target)
            samples = open(target_fd, "rb", buffering=0)  # noqa: SIM115  the sound closes it
            try:
                self._run(DecodeSound(source, target, format_, self._config.max_audio_seconds))
                return Sound(samples)
            except BaseException:
                samples.close()
                raise
        except OSError as error:
            raise _make_unavailable(str(error)) from error
        finally:
            for path in paths:
                with suppress(OSError):
                    os.unlink(path)

    def _run(self, task: DecodeSound) -> None:
        """Runs a task in the process. Raises InvalidAudio or EngineUnavailable."""
        try:
            encoded = self._process.run(msgspec.msgpack.encode(task))
        except JobLost as lost:
            raise _make_unavailable(str(lost)) from lost
        except JobEnded as ended:
            raise self._explain_end(ended) from ended
        # The annotation joins the two kinds for mypy.
        outcome: Outcome = msgspec.msgpack.decode(encoded, type=Decoded | Refused)
        if isinstance(outcome, Refused):
            raise self._explain_refusal(outcome)

    def _explain_end(self, ended: JobEnded) -> InvalidAudio:
        match ended:
            case TimeLimitExceeded():
                limit_s = self._config.audio_timeout_s
                return AudioTooExpensive(
                    f"must be decoded in <= {limit_s:g} s (audio_timeout_s), given a sound file "
                    "that takes longer"
                )
            case MemoryLimitExceeded():
                max_bytes = self._config.max_audio_memory_bytes
                return AudioTooExpensive(
                    f"must be decoded in <= {max_bytes} bytes of memory (max_audio_memory_bytes), "
                    "given a sound file that takes more"
                )
            case _:  # FFmpeg or our code fails on this file
                logger.warning("the decoder of sound files failed: %s", ended)
                return DamagedAudio("a file that the decoder cannot read")

    def _explain_refusal(self, refused: Refused) -> InvalidAudio | EngineUnavailable:
        match refused.kind:
            case RefusalKind.UNKNOWN:
                return UnknownAudioFormat(refused.detail)
            case RefusalKind.NO_STREAM:
                return NoAudioStream()
            case RefusalKind.EMPTY:
                return EmptyAudio(refused.detail)
            case RefusalKind.DAMAGED:
                return DamagedAudio(refused.detail)
            case RefusalKind.TOO_LONG:
                return AudioTooLong(self._config.max_audio_seconds)
            case RefusalKind.NO_SPACE:
                return _make_unavailable(refused.detail)
            case _:
                assert_never(refused.kind)


class _Decoding:
    """Closes the sound of a caller that left before it got the sound."""

    def __init__(self) -> None:
        self._is_abandoned = Event()
        self._sounds = list[Sound]()  # empty, or one sound

    def keep(self, sound: Sound) -> Sound:
        """Returns the sound, in the thread that made it."""
        self._sounds.append(sound)
        if self._is_abandoned.is_set():
            sound.close()
        return sound

    def abandon(self) -> None:
        """Closes the sound now, or when it is made."""
        self._is_abandoned.set()
        for sound in self._sounds:
            sound.close()


def _make_unavailable(reason: str) -> EngineUnavailable:
    return EngineUnavailable(
        f"sound files cannot be read now: {reason}", retry_after_s=_RETRY_AFTER_S
    )
