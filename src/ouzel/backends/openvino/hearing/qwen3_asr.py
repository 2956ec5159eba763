"""Qwen3-ASR has the encoder AuT: convolutions over seconds of a sound, layers whose attention stays
within windows of seconds, and a projector.

Reference: transformers, models/qwen3_asr/modeling_qwen3_asr.py; Qwen3-ASR (Shi 2026,
arXiv 2601.21337).

A pass of the encoder computes one window of attention, because no row depends on another window.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.activations import activate
from ouzel.backends.openvino.graph.nodes import Node, gather, integers
from ouzel.backends.openvino.graph.vision import VisionBuilder
from ouzel.backends.openvino.graph.whisper import MEL, NORM, EncoderShape, build_layers
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.vision_model import HearingModel, Inputs, SoundPasses
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import EngineFailed, ModelLoadError
from ouzel.types.engine_request import SoundInput

PREFIX = "audio_tower."
ROW_IDS = "row_ids"  # the rows of the sound among the rows of all chunks of a pass
_HALF_CHUNK = 50  # frames: the numbers of tokens in the processors belong to no other value
_NUM_CONVOLUTIONS = 3
_KERNEL = 3  # frames, and mel bins, of the kernels of the convolutions
_MAX_PERIOD = 10_000.0  # the positions are sines and cosines


@dataclass(frozen=True)
class ChunkShape:
    """The convolutions take chunks of frames; a window of attention has several chunks."""

    num_mel_bins: int
    num_channels: int
    num_frames: int  # a chunk has so many
    num_chunks: int  # a window of attention has so many

    @property
    def num_rows(self) -> int:
        """Returns the number of rows of a whole chunk."""
        return count_rows(self.num_frames)

    @classmethod
    def read(cls, audio: HfConfig, num_mel_bins: int) -> "ChunkShape":
        audio.require(n_window=_HALF_CHUNK)
        num_frames, window = 2 * _HALF_CHUNK, audio.size("n_window_infer", 800)
        if window % num_frames:
            raise ModelLoadError(
                f"{audio.source}: n_window_infer must be a multiple of {num_frames}, found {window}"
            )
        num_channels = audio.size("downsample_hidden_size", 480)
        return cls(num_mel_bins, num_channels, num_frames, window // num_frames)


def build(config: HfConfig, b: VisionBuilder) -> HearingModel:
    if config.has("classify_num"):
        raise config.refuse("classify_num", "models that write text, without this key")
    return build_encoder(config, b)


def build_encoder(
    config: HfConfig, b: VisionBuilder, *, fills_short_sounds: bool = True
) -> HearingModel:
    """Builds the encoder; zeros fill up the last chunk of a sound, unless it is the only one of a
    family that does not fill it.
    """
    audio = config.required_section("audio_config").with_defaults(num_mel_bins=128)
    audio.require(scale_embedding=False)
    shape = replace(EncoderShape.read(audio), has_key_bias=True)
    chunks = ChunkShape.read(audio, shape.num_mel_bins)
    size, text_size = shape.hidden_size, config.text_model().size("hidden_size")
    if (output_size := audio.size("output_dim", 3584)) != text_size:
        raise ModelLoadError(
            f"{audio.source}: output_dim must be {text_size}, the hidden_size of the language "
            f"model, found {output_size}"
        )
    rows = b.next_part(embed_chunks(b, shape, chunks))
    rows = build_layers(b, rows, PREFIX, shape)
    rows = b.norm(rows, PREFIX + "ln_post", size, NORM)
    rows = b.linear(rows, "multi_modal_projector.linear_1", size, size)
    rows = activate(rows, shape.activation)
    features = b.linear(rows, "multi_modal_projector.linear_2", size, text_size)
    flat = ops.reshape(features, integers(-1, text_size), False)
    return b.hearing_model(flat, sound_passes(chunks, fills_short_sounds=fills_short_sounds))


def embed_chunks(b: VisionBuilder, shape: EncoderShape, chunks: ChunkShape) -> Node:
    """Returns the rows of the first layer, [1, rows, hidden_size].

    The convolutions halve the frames and the mel bins three times.
    """
    num_channels, size = chunks.num_channels, shape.hidden_size
    mel = b.input(MEL, [-1, 1, chunks.num_mel_bins, -1], ov.Type.f32)
    maps, num_inputs = mel, 1
    for number in range(1, _NUM_CONVOLUTIONS + 1):
        maps = convolve(b, maps, f"{PREFIX}conv2d{number}", num_inputs, num_channels)
        maps, num_inputs = activate(maps, shape.activation), num_channels
    # [chunks, channels, bins, rows] becomes [chunks, rows, channels * bins]
    num_columns = num_channels * count_rows(chunks.num_mel_bins)
    columns = ops.transpose(maps, integers(0, 3, 1, 2))
    columns = ops.reshape(columns, integers(0, 0, num_columns), True)
    rows = b.linear(columns, PREFIX + "conv_out", num_columns, size, has_bias=False)
    num_rows = ops.gather(ops.shape_of(rows), integers(1), ops.constant(np.int64(0)))
    positions = ops.slice(
        b.constant(make_positions(chunks.num_rows, size)),
        *(integers(0), num_rows, integers(1), integers(0)),
    )
    flat = ops.reshape(ops.add(rows, positions), integers(-1, size), False)
    own = gather(flat, b.input(ROW_IDS, [-1], ov.Type.i64))
    return ops.unsqueeze(own, integers(0))


def convolve(b: VisionBuilder, maps: Node, name: str, num_inputs: int, num_outputs: int) -> Node:
    """Convolves [chunks, inputs, bins, frames] with a stride of 2, with zeros at all borders."""
    kernel = b.constant(b.array(name + ".weight", num_outputs, num_inputs, _KERNEL, _KERNEL))
    product = ops.convolution(maps, kernel, [2, 2], [1, 1], [1, 1], [1, 1])
    bias = b.array(name + ".bias", num_outputs).reshape(1, num_outputs, 1, 1)
    return ops.add(product, b.constant(bias))


def make_positions(num_rows: int, size: int) -> NDArray[np.float32]:
    """Returns the positions of a chunk's rows, [num_rows, size]: sines, then cosines."""
    num_periods = size // 2
    steps = np.log(_MAX_PERIOD) / max(num_periods - 1, 1) * np.arange(num_periods)
    angles = np.arange(num_rows)[:, None] * np.exp(-steps)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def count_rows(num_frames: int) -> int:
    """Returns the number of rows that the convolutions make of a chunk's frames."""
    for _ in range(_NUM_CONVOLUTIONS):
        num_frames = (num_frames + 1) // 2
    return num_frames


def sound_passes(chunks: ChunkShape, *, fills_short_sounds: bool) -> SoundPasses:
    """Returns the function that makes the inputs of each window of a sound."""

    def passes(sound: SoundInput, mel: NDArray[np.float32]) -> list[Inputs]:
        num_bins, num_frames = mel.shape
        if num_bins != chunks.num_mel_bins or not 1 <= sound.num_frames <= num_frames:
            raise EngineFailed(
                f"a sound must have {chunks.num_mel_bins} mel bins and at least its "
                f"{sound.num_frames} frames, the processor made {num_bins} bins and "
                f"{num_frames} frames"
            )
        own = mel[:, : sound.num_frames]
        if sound.num_frames < chunks.num_frames and not fills_short_sounds:
            rows = np.arange(count_rows(sound.num_frames), dtype=np.int64)
            return [{MEL: own[None, None], ROW_IDS: rows}]
        size = chunks.num_chunks * chunks.num_frames
        begins = range(0, sound.num_frames, size)
        return [_make_inputs(own[:, begin : begin + size], chunks) for begin in begins]

    return passes


def _make_inputs(mel: NDArray[np.float32], chunks: ChunkShape) -> Inputs:
    """Returns the inputs of a window. Zeros, and no silence, fill the last chunk."""
    num_bins, num_frames = mel.shape
    num_whole, num_left = divmod(num_frames, chunks.num_frames)
    num_chunks = num_whole + bool(num_left)
    padded = np.zeros((num_bins, num_chunks * chunks.num_frames), np.float32)
    padded[:, :num_frames] = mel
    maps = padded.reshape(num_bins, 1, num_chunks, chunks.num_frames).transpose(2, 1, 0, 3)
    num_rows = num_whole * chunks.num_rows + count_rows(num_left)
    return {MEL: maps, ROW_IDS: np.arange(num_rows, dtype=np.int64)}
