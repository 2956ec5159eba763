"""Describes the part of a loaded speech model that reads sound, for its runner."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import ov


@dataclass(frozen=True, kw_only=True)
class AudioEncoderModel:
    """The graphs of an audio encoder, which run one after the other on one window of sound."""

    parts: list[ov.Model]
    # The graphs' constants point into these arrays: keep them as long as the compiled models.
    arrays: list[NDArray[np.generic]]
    num_mel_bins: int
    num_frames: int  # frames of a window
    num_encoder_frames: int  # rows of features
    # prefixes of tensors that the checkpoint may have although the model does not use them
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SpeechModel:
    """The parts that make a decoder attend to sound.

    Alignment heads are heads of the decoder whose attention tells when each token is spoken. The
    decoder gives their queries, and `filling` gives their keys, head beside head.
    """

    filling: ov.Model  # writes keys and values of the features into the cache of the decoder
    # The constants of `filling` point into these arrays.
    arrays: list[NDArray[np.generic]]
    num_alignment_heads: int  # 0: the model cannot tell when tokens are spoken
    head_dim: int
    encoder: AudioEncoderModel | None = None  # None only while the model is being built
