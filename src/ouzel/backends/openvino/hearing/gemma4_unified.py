"""Gemma 4 12B has no audio encoder: it normalises and projects the samples of 40 ms.

Reference: transformers, models/gemma4_unified/modeling_gemma4_unified.py.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.norms import Norm, normalise
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.models import gemma4_text, gemma4_unified_text
from ouzel.backends.openvino.vision_model import HearingModel, Inputs
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import EngineFailed
from ouzel.types.engine_request import SoundInput

SAMPLES = "samples"


def build(config: HfConfig, b: VisionBuilder) -> HearingModel:
    audio = config.required_section("audio_config")
    size = audio.size("audio_embed_dim", 640)
    defaults = gemma4_text.DEFAULTS | gemma4_unified_text.DEFAULTS
    text_size = config.text_model().with_defaults(**defaults).size("hidden_size")
    rows = normalise(
        b.input(SAMPLES, [-1, size], ov.Type.f32), Norm(audio.number("rms_norm_eps", 1e-6))
    )
    features = b.linear(rows, "embed_audio.embedding_projection", size, text_size, has_bias=False)

    def passes(sound: SoundInput, samples: NDArray[np.float32]) -> list[Inputs]:
        if samples.shape[0] != size:
            raise EngineFailed(
                f"a token of a sound must have {size} samples, the processor made "
                f"{samples.shape[0]}"
            )
        return [{SAMPLES: samples.T}]

    return b.hearing_model(features, passes)
