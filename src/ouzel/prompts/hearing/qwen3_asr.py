"""Qwen3-ASR reads up to 20 minutes of a sound; 13 tokens stand for a second.

Reference: transformers, models/qwen3_asr/feature_extraction_qwen3_asr.py and
processing_qwen3_asr.py; the limit of 20 minutes is from qwen-asr, inference/utils.py.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from ouzel.audio.mel import HOP, MelSpectrogram, Spectrogram
from ouzel.audio.sound import SAMPLE_RATE, SampledSound
from ouzel.prompts.hearing.base import SoundLayout, SoundProcessor, check_length
from ouzel.prompts.hearing.settings import read_mel_settings
from ouzel.prompts.vision.settings import ProcessorFiles, read_record

_MAX_SECONDS = 1200
_CHUNK_FRAMES = 100  # the convolutions of the encoder take a second at once
_FRAMES_PER_ROW = 8  # three convolutions halve the frames of a chunk
_REFLECTED = 200  # samples at both ends of a sound that the spectrogram reflects


class _PaddingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the settings that only this extractor has, with the defaults of the reference."""

    # samples; silence behind a shorter sound belongs to the sound
    min_length: Annotated[int, Meta(ge=0, le=_MAX_SECONDS * SAMPLE_RATE)] = 8000


@dataclass(frozen=True, slots=True)
class Qwen3AsrProcessor:
    feature_token: str
    mel: MelSpectrogram
    min_samples: int = 0  # silence fills up a shorter sound
    max_seconds: int = _MAX_SECONDS

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, num_samples: int) -> SoundLayout:
        shortest = 1 if self.min_samples > _REFLECTED else _REFLECTED + 1
        check_length(num_samples, min_samples=shortest, max_seconds=self.max_seconds)
        num_frames = max(num_samples, self.min_samples) // HOP
        num_tokens = count_tokens(num_frames)
        return SoundLayout(self.feature_token * num_tokens, num_tokens, num_frames)

    def compute_features(self, sound: SampledSound) -> Spectrogram:
        samples = sound.samples(0, sound.num_samples)
        missing = max(self.min_samples - len(samples), 0)
        return self.mel.compute(np.pad(samples, (0, missing)))


def count_tokens(num_frames: int) -> int:
    """Returns the number of tokens of a sound: each chunk has the rows that the convolutions make
    of its frames.
    """
    num_chunks, num_left = divmod(num_frames, _CHUNK_FRAMES)
    return num_chunks * _count_rows(_CHUNK_FRAMES) + _count_rows(num_left)


def _count_rows(num_frames: int) -> int:
    return -(-num_frames // _FRAMES_PER_ROW)


def load(files: ProcessorFiles) -> SoundProcessor:
    """Makes the processor. Raises ModelLoadError."""
    padding = read_record(files.feature_extractor, _PaddingSettings, files.feature_extractor_path)
    return Qwen3AsrProcessor(
        feature_token=read_feature_token(files),
        mel=read_mel(files),
        min_samples=padding.min_length,
    )


def read_feature_token(files: ProcessorFiles) -> str:
    return files.token_text("audio_token", "<|audio_pad|>")


def read_mel(files: ProcessorFiles) -> MelSpectrogram:
    """Raises ModelLoadError for settings of another extractor."""
    audio = files.config.get("audio_config")
    num_bins = audio.get("num_mel_bins", 128) if isinstance(audio, dict) else 128
    return MelSpectrogram(read_mel_settings(files, num_bins).feature_size)
