"""Gemma 4 12B reads the samples of a sound themselves, up to 30 s; one token stands for 40 ms.

Reference: transformers, models/gemma4_unified/processing_gemma4_unified.py. The reference takes
sounds of any length; here a sound longer than 30 s, the limit of Gemma 4 E2B and E4B, is refused.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from ouzel.audio.mel import Spectrogram
from ouzel.audio.sound import SAMPLE_RATE, SampledSound
from ouzel.errors import ModelLoadError
from ouzel.prompts.hearing.base import SoundLayout, SoundProcessor, check_length
from ouzel.prompts.vision.settings import ProcessorFiles, read_record

_MAX_SECONDS = 30
_EXTRACTOR = "Gemma4UnifiedAudioFeatureExtractor"


class _Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the settings of the extractor, with the defaults of the reference."""

    feature_extractor_type: str = _EXTRACTOR
    sampling_rate: int = SAMPLE_RATE
    audio_samples_per_token: Annotated[int, Meta(ge=1, le=SAMPLE_RATE)] = 640


@dataclass(frozen=True, slots=True)
class Gemma4UnifiedSoundProcessor:
    feature_token: str
    start_token: str
    end_token: str
    samples_per_token: int

    @property
    def placeholder(self) -> str:
        return self.feature_token

    def layout(self, num_samples: int) -> SoundLayout:
        check_length(num_samples, min_samples=1, max_seconds=_MAX_SECONDS)
        num_tokens = -(-num_samples // self.samples_per_token)
        text = f"{self.start_token}{self.feature_token * num_tokens}{self.end_token}"
        return SoundLayout(text, num_tokens, num_tokens)

    def compute_features(self, sound: SampledSound) -> Spectrogram:
        """Returns the samples of each token, [samples, tokens]; zeros follow the sound."""
        num_tokens = self.layout(sound.num_samples).num_frames
        samples = np.zeros(num_tokens * self.samples_per_token, np.float32)
        samples[: sound.num_samples] = sound.samples(0, sound.num_samples)
        return np.ascontiguousarray(samples.reshape(num_tokens, self.samples_per_token).T)


def load(files: ProcessorFiles) -> SoundProcessor:
    """Makes the processor. Raises ModelLoadError."""
    source = files.feature_extractor_path
    settings = read_record(files.feature_extractor, _Settings, source)
    expected = {
        "feature_extractor_type": (settings.feature_extractor_type, _EXTRACTOR),
        "sampling_rate": (settings.sampling_rate, SAMPLE_RATE),
    }
    for key, (found, supported) in expected.items():
        if found != supported:
            raise ModelLoadError(f"{source}: {key} must be {supported}, found {found}")
    return Gemma4UnifiedSoundProcessor(
        feature_token=files.token_text("audio_token", "<|audio|>"),
        start_token=files.token_text("boa_token", "<|audio>"),
        end_token=files.token_text("eoa_token", "<audio|>"),
        samples_per_token=settings.audio_samples_per_token,
    )
