"""Gemma 4 reads up to 30 s of a sound; one token stands for 40 ms.

Reference: transformers, models/gemma4/processing_gemma4.py. The reference cuts a longer sound
without a word; here it is refused.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.audio.magnitude_mel import MagnitudeMel
from ouzel.audio.mel import Spectrogram
from ouzel.audio.sound import SAMPLE_RATE, SampledSound
from ouzel.errors import ModelLoadError
from ouzel.prompts.hearing.base import SoundLayout, SoundProcessor, check_length
from ouzel.prompts.vision.settings import ProcessorFiles, read_record

_MAX_SECONDS = 30
_EXTRACTOR = "Gemma4AudioFeatureExtractor"

_Milliseconds = Annotated[float, Meta(ge=1, le=1000)]
_Hertz = Annotated[float, Meta(ge=0, le=SAMPLE_RATE / 2)]


class _Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the settings of the extractor, with the defaults of the reference."""

    feature_extractor_type: str = _EXTRACTOR
    feature_size: Annotated[int, Meta(ge=4, le=512)] = 128
    sampling_rate: int = SAMPLE_RATE
    frame_length_ms: _Milliseconds = 20.0
    hop_length_ms: _Milliseconds = 10.0
    min_frequency: _Hertz = 0.0
    max_frequency: _Hertz = SAMPLE_RATE / 2
    preemphasis: float = 0.0
    dither: float = 0.0
    fft_overdrive: bool = False
    input_scale_factor: float = 1.0
    mel_floor: Annotated[float, Meta(gt=0)] = 1e-3
    per_bin_mean: tuple[float, ...] = ()
    per_bin_stddev: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Gemma4SoundProcessor:
    feature_token: str
    start_token: str
    end_token: str
    mel: MagnitudeMel

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, num_samples: int) -> SoundLayout:
        mel = self.mel
        # one frame, and the sample behind it
        min_samples = mel.frame_size - mel.frame_size // 2 + 1
        check_length(num_samples, min_samples=min_samples, max_seconds=_MAX_SECONDS)
        num_frames = mel.count_frames(num_samples)
        num_tokens = -(-num_frames // 4)
        text = f"{self.start_token}{self.feature_token * num_tokens}{self.end_token}"
        return SoundLayout(text, num_tokens, num_frames)

    def compute_features(self, sound: SampledSound) -> Spectrogram:
        return self.mel.compute(sound)


def load(files: ProcessorFiles) -> SoundProcessor:
    """Makes the processor. Raises ModelLoadError."""
    return Gemma4SoundProcessor(
        feature_token=files.token_text("audio_token", "<|audio|>"),
        start_token=files.token_text("boa_token", "<|audio>"),
        end_token=files.token_text("eoa_token", "<audio|>"),
        mel=_make_mel(files),
    )


def _make_mel(files: ProcessorFiles) -> MagnitudeMel:
    source = files.feature_extractor_path
    settings = read_record(files.feature_extractor, _Settings, source)
    expected = {
        "feature_extractor_type": (settings.feature_extractor_type, _EXTRACTOR),
        "sampling_rate": (settings.sampling_rate, SAMPLE_RATE),
        "preemphasis": (settings.preemphasis, 0),
        "dither": (settings.dither, 0),
    }
    for key, (found, supported) in expected.items():
        if found != supported:
            raise ModelLoadError(f"{source}: {key} must be {supported}, found {found}")
    for key in ("per_bin_mean", "per_bin_stddev"):
        if (length := len(getattr(settings, key))) not in (0, settings.feature_size):
            raise ModelLoadError(
                f"{source}: {key} must have feature_size {settings.feature_size} numbers, found "
                f"{length}"
            )
    if not settings.min_frequency < settings.max_frequency or 0 in settings.per_bin_stddev:
        raise ModelLoadError(
            f"{source}: min_frequency must be < max_frequency, and per_bin_stddev without 0"
        )
    frame_size = round(SAMPLE_RATE * settings.frame_length_ms / 1000)
    return MagnitudeMel(
        num_bins=settings.feature_size,
        frame_size=frame_size,
        hop=round(SAMPLE_RATE * settings.hop_length_ms / 1000),
        fft_size=2 ** math.ceil(math.log2(frame_size)) * (2 if settings.fft_overdrive else 1),
        min_hz=settings.min_frequency,
        max_hz=settings.max_frequency,
        floor=settings.mel_floor,
        factor=settings.input_scale_factor,
        means=settings.per_bin_mean,
        deviations=settings.per_bin_stddev,
    )
