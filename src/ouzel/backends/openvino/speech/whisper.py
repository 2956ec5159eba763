"""Whisper's encoder reads windows of 30 s. models/whisper.py builds the decoder.

Reference: transformers, models/whisper/modeling_whisper.py; Whisper (Radford 2022,
arXiv 2212.04356).
"""

from ouzel.backends.openvino.graph.nodes import Node, integers
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.whisper import (
    MEL,
    NORM,
    EncoderShape,
    build_layers,
    convolve_sound,
)
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.speech_model import AudioEncoderModel
from ouzel.checkpoint.hf_config import HfConfig

PREFIX = "model.encoder."


def build(config: HfConfig, b: VisionBuilder) -> AudioEncoderModel:
    shape = EncoderShape.read(config)
    size = shape.hidden_size
    rows = build_layers(b, embed_sound(b, shape), PREFIX, shape)
    rows = b.norm(rows, PREFIX + "layer_norm", size, NORM)
    encoder = b.vision_model(ops.reshape(rows, integers(-1, size), False), passes=lambda *_: [])
    return AudioEncoderModel(
        parts=encoder.parts,
        arrays=encoder.arrays,
        num_mel_bins=shape.num_mel_bins,
        num_frames=2 * shape.num_rows,
        num_encoder_frames=shape.num_rows,
        left_out=("proj_out.",),  # a copy of the embedding
    )


def embed_sound(b: VisionBuilder, shape: EncoderShape) -> Node:
    """Returns the rows of the first layer, [1, rows, hidden_size], of the input `mel`."""
    mel = b.input(MEL, [1, shape.num_mel_bins, 2 * shape.num_rows], ov.Type.f32)
    rows = convolve_sound(b, mel, PREFIX, shape)
    positions = b.array(PREFIX + "embed_positions.weight", shape.num_rows, shape.hidden_size)
    return ops.add(rows, b.constant(positions))
