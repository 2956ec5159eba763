"""Divides a sound at its pauses into chunks that fit into one window of the model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.transcription.options import VoiceDetection
from ouzel.transcription.voice_activity import SpeechProbabilities
from ouzel.transcription.windows import FRAME_SAMPLES, SAMPLE_RATE

_EARLIEST_SPLIT = 0.5  # speech without a pause is split in the second half of a window


@dataclass(frozen=True, slots=True)
class Stretch:
    """The frames [begin, end) of a sound."""

    begin: int
    end: int


def find_chunks(
    speech: SpeechProbabilities, detection: VoiceDetection, *, num_frames: int, max_frames: int
) -> list[Stretch]:
    """Returns chunks of at most `max_frames` that have all speech, ascending, in frames of 10 ms.

    `num_frames` is the length of the sound. Pauses between chunks are in no chunk.
    """
    stretches = _find_speech(speech, detection)
    size = speech.frame_samples / FRAME_SAMPLES
    padding = detection.prefix_padding_ms * SAMPLE_RATE // 1000 // FRAME_SAMPLES
    pause = detection.silence_duration_ms * SAMPLE_RATE // 1000 // FRAME_SAMPLES
    padded: list[Stretch] = []
    for each in stretches:
        begin = max(int(each.begin * size) - padding, padded[-1].end if padded else 0)
        # Half of the pause stays behind speech, so that no last consonant is lost.
        end = min(int(each.end * size) + pause // 2, num_frames)
        padded += _split_long(Stretch(begin, end), speech, max_frames)
    return _join(padded, max_frames)


def _find_speech(speech: SpeechProbabilities, detection: VoiceDetection) -> list[Stretch]:
    """Returns the stretches of speech, in frames of the detector, joined over short pauses."""
    is_speech = speech.values >= detection.threshold
    edges = np.flatnonzero(np.diff(np.concatenate(([False], is_speech, [False])).astype(np.int8)))
    least_pause = detection.silence_duration_ms / 1000 * SAMPLE_RATE / speech.frame_samples
    found: list[Stretch] = []
    for begin, end in edges.reshape(-1, 2).tolist():
        if found and begin - found[-1].end < least_pause:
            found[-1] = Stretch(found[-1].begin, end)
        else:
            found.append(Stretch(begin, end))
    return found


def _split_long(stretch: Stretch, speech: SpeechProbabilities, max_frames: int) -> list[Stretch]:
    """Splits speech that is longer than a window where it is quietest."""
    parts: list[Stretch] = []
    begin = stretch.begin
    while stretch.end - begin > max_frames:
        earliest = begin + int(max_frames * _EARLIEST_SPLIT)
        cut = _find_quietest(speech, earliest, begin + max_frames)
        parts.append(Stretch(begin, cut))
        begin = cut
    if begin < stretch.end:
        parts.append(Stretch(begin, stretch.end))
    return parts


def _find_quietest(speech: SpeechProbabilities, begin: int, end: int) -> int:
    """Returns the frame of 10 ms in [begin, end) with the lowest probability of speech."""
    size = speech.frame_samples / FRAME_SAMPLES
    first = int(np.ceil(begin / size))
    values: NDArray[np.float32] = speech.values[first : max(int(end / size), first + 1)]
    if not len(values):
        return end
    return min(max(int((first + int(values.argmin())) * size), begin), end)


def _join(stretches: Sequence[Stretch], max_frames: int) -> list[Stretch]:
    """Joins neighbours as long as they fit into a window together."""
    joined: list[Stretch] = []
    for each in stretches:
        if joined and each.end - joined[-1].begin <= max_frames:
            joined[-1] = Stretch(joined[-1].begin, each.end)
        else:
            joined.append(each)
    return joined
