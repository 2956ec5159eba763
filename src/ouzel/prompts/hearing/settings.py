"""Reads the settings of Whisper's feature extractor from a model directory."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.audio.mel import HOP
from ouzel.audio.sound import SAMPLE_RATE
from ouzel.errors import ModelLoadError
from ouzel.prompts.vision.settings import ProcessorFiles, read_record

_FFT_SIZE = 400  # samples of a frame


class MelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Holds the settings of the extractor, with the defaults of the reference."""

    feature_size: Annotated[int, Meta(ge=1, le=512)] = 80
    chunk_length: Annotated[int, Meta(ge=1, le=3600)] = 30  # seconds
    hop_length: int = HOP
    n_fft: int = _FFT_SIZE
    sampling_rate: int = SAMPLE_RATE


def read_mel_settings(files: ProcessorFiles, num_bins: object) -> MelSettings:
    """Reads the settings; `num_bins` is the number of config.json. Raises ModelLoadError."""
    source = files.feature_extractor_path
    settings = read_record(files.feature_extractor, MelSettings, source)
    expected = {
        "feature_size": (settings.feature_size, num_bins),
        "hop_length": (settings.hop_length, HOP),
        "n_fft": (settings.n_fft, _FFT_SIZE),
        "sampling_rate": (settings.sampling_rate, SAMPLE_RATE),
    }
    for key, (found, supported) in expected.items():
        if found != supported:
            raise ModelLoadError(f"{source}: {key} must be {supported}, found {found}")
    return settings
