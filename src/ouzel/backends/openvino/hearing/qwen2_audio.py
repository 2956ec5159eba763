"""Qwen2-Audio has Whisper's encoder, averages pairs of its rows, and projects them.

Reference: transformers, models/qwen2_audio/modeling_qwen2_audio.py; Qwen2-Audio (Chu 2024,
arXiv 2407.10759).

The reference encodes 30 s and hides the silence behind the sound from the rows of the sound. Here
the encoder computes only the rows of the sound, which gives the same features in less time.
"""

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.nodes import Node, gather, integers
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.whisper import (
    MEL,
    NORM,
    EncoderShape,
    build_layers,
    convolve_sound,
)
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import HearingModel, Inputs, SoundPasses
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import EngineFailed
from ouzel.types.engine_request import SoundInput

PREFIX = "audio_tower."
ROW_IDS = "row_ids"  # the rows of the sound; a row has two frames


def build(config: HfConfig, b: VisionBuilder) -> HearingModel:
    audio = config.required_section("audio_config").with_defaults(num_mel_bins=128)
    audio.require(scale_embedding=False)
    shape = EncoderShape.read(audio)
    size, text_size = shape.hidden_size, config.text_model().size("hidden_size", 4096)
    rows = build_layers(b, embed_sound(b, shape), PREFIX, shape)
    rows = average_pairs(rows, size)
    rows = b.norm(rows, PREFIX + "layer_norm", size, NORM)
    features = b.linear(rows, "multi_modal_projector.linear", size, text_size)
    return b.hearing_model(features, sound_passes(shape))


def embed_sound(b: VisionBuilder, shape: EncoderShape) -> Node:
    """Returns the rows of the first layer, [1, rows, hidden_size]."""
    mel = b.input(MEL, [1, shape.num_mel_bins, -1], ov.Type.f32)
    row_ids = b.input(ROW_IDS, [-1], ov.Type.i64)
    rows = ops.gather(convolve_sound(b, mel, PREFIX, shape), row_ids, ops.constant(np.int64(1)))
    positions = b.array(PREFIX + "embed_positions.weight", shape.num_rows, shape.hidden_size)
    return ops.add(rows, gather(b.constant(positions), row_ids))


def average_pairs(rows: Node, size: int) -> Node:
    """Averages successive rows: [1, rows, size] becomes [rows // 2, size]. An odd last row is left
    out.
    """
    columns = ops.transpose(rows, integers(0, 2, 1))
    averages = ops.avg_pool(columns, [2], [0], [0], [2], exclude_pad=True)
    return ops.reshape(ops.transpose(averages, integers(0, 2, 1)), integers(-1, size), False)


def sound_passes(shape: EncoderShape) -> SoundPasses:
    """Returns the function that makes the inputs of a sound."""

    def passes(sound: SoundInput, mel: NDArray[np.float32]) -> list[Inputs]:
        num_bins, num_frames = mel.shape
        num_rows = (sound.num_frames + 1) // 2
        most = min(shape.num_rows, (num_frames + 1) // 2)
        if num_bins != shape.num_mel_bins or not 2 <= num_rows <= most:
            raise EngineFailed(
                f"a sound must have {shape.num_mel_bins} mel bins and 3 to {2 * shape.num_rows} "
                f"frames, the processor made {num_bins} bins and {num_frames} frames"
            )
        return [{MEL: mel[None], ROW_IDS: np.arange(num_rows, dtype=np.int64)}]

    return passes
