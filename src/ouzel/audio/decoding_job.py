"""Decodes a sound file into a file of samples, in the limited process."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.audio.ffmpeg_file import prepare_ffmpeg, read_with_ffmpeg
from ouzel.audio.refusals import Refusal, RefusalKind, Refused
from ouzel.audio.resampler import Resampler
from ouzel.audio.sound import SAMPLE_RATE, quantize, write_samples
from ouzel.audio.sound_formats import SoundFormat
from ouzel.audio.wav_file import read_wav

_MAX_WHOLE = 2**18  # samples that are resampled at once


class DecodeSound(msgspec.Struct, frozen=True):
    """A task of the process. It deletes the names of both files as soon as they are open."""

    source: str  # path of the sound file
    target: str  # path of an empty file for int16 samples
    format: SoundFormat
    max_s: float


class Decoded(msgspec.Struct, frozen=True, tag="decoded"):
    """The target has all samples. The parent reads their number from the file's size."""


Outcome = Decoded | Refused


def create_decoding_job() -> Callable[[bytes], bytes]:
    """Returns a function that runs an encoded DecodeSound and returns its encoded Outcome."""
    if find_spec("av") is not None:
        prepare_ffmpeg()

    def run(encoded: bytes) -> bytes:
        return msgspec.msgpack.encode(_run(msgspec.msgpack.decode(encoded, type=DecodeSound)))

    return run


def _run(task: DecodeSound) -> Outcome:
    source, target = Path(task.source), Path(task.target)
    with source.open("rb") as read, target.open("wb", buffering=0) as written:
        with suppress(OSError):  # some systems do not delete open files; the parent deletes them
            source.unlink()
            target.unlink()
        try:
            _decode(read, written, task)
        except Refusal as refusal:
            return Refused(refusal.kind, refusal.detail)
        return Decoded()


def _decode(source: BinaryIO, target: BinaryIO, task: DecodeSound) -> None:
    """Writes the samples. Raises Refusal."""
    if task.format is SoundFormat.WAV:
        pieces = _read_wav(source)
    else:
        pieces = read_with_ffmpeg(source, task.format.value, task.max_s)
    num_samples = 0
    max_samples = int(task.max_s * SAMPLE_RATE) + 1  # rates are rounded
    for samples in pieces:
        num_samples += len(samples)
        if num_samples > max_samples:
            raise Refusal(RefusalKind.TOO_LONG)
        try:
            write_samples(target, samples)
        except OSError as error:
            raise Refusal(RefusalKind.NO_SPACE, str(error)) from error
    if not num_samples:
        raise Refusal(RefusalKind.EMPTY, "a file without samples")


def _read_wav(file: BinaryIO) -> Iterator[NDArray[np.int16]]:
    format_, pieces = read_wav(file)
    resampler = Resampler(format_.rate)
    for piece in pieces:
        for begin in range(0, len(piece), _MAX_WHOLE):
            yield quantize(resampler.push(piece[begin : begin + _MAX_WHOLE]))
    yield quantize(resampler.finish())
