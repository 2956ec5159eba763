"""Makes sound files for tests."""

import struct
from io import BytesIO

import av
import numpy as np
from numpy.typing import NDArray

from tests.audio.signals import make_tone

PCM, FLOAT, A_LAW, MU_LAW, EXTENSIBLE = 1, 3, 6, 7, 0xFFFE
_GUID_TAIL = bytes.fromhex("000000001000800000aa00389b71")


def make_chunk(name: bytes, data: bytes, size: int | None = None) -> bytes:
    """Returns a chunk; `size` is the declared size if it is a lie."""
    declared = len(data) if size is None else size
    return name + struct.pack("<I", declared) + data + b"\0" * (len(data) % 2)


def make_wav(
    data: bytes,
    *,
    tag: int = PCM,
    channels: int = 1,
    rate: int = 16_000,
    bits: int = 16,
    frame_bytes: int | None = None,
    data_size: int | None = None,
    riff_size: int | None = None,
    extension: bytes = b"",
    before: bytes = b"",
) -> bytes:
    """Returns a WAV file, whose header says anything.

    `extension` ends the fmt chunk; `before` has chunks between the format and the samples.
    """
    frame_bytes = channels * bits // 8 if frame_bytes is None else frame_bytes
    numbers = (tag, channels, rate, rate * frame_bytes & 0xFFFFFFFF, frame_bytes & 0xFFFF, bits)
    form = make_chunk(b"fmt ", struct.pack("<HHIIHH", *numbers) + extension)
    chunks = b"WAVE" + form + before + make_chunk(b"data", data, data_size)
    return make_chunk(b"RIFF", chunks, riff_size)


def extend(tag: int, valid_bits: int) -> bytes:
    """Returns the end of an extensible format."""
    return struct.pack("<HHIH", 22, valid_bits, 0, tag) + _GUID_TAIL


def encode_samples(samples: NDArray[np.float32], kind: str) -> bytes:
    """Encodes samples as u8, i16, i24, i32, f32 or f64."""
    if kind == "u8":
        return np.rint(samples * 127 + 128).astype(np.uint8).tobytes()
    if kind.startswith("f"):
        return samples.astype(f"<f{int(kind[1:]) // 8}").tobytes()
    num_bytes = int(kind[1:]) // 8
    integers = np.rint(samples.astype(np.float64) * (2.0 ** (8 * num_bytes - 1) - 1))
    whole = integers.astype("<i4").view(np.uint8).reshape(-1, 4)
    return whole[:, :num_bytes].tobytes()


def encode(
    samples: NDArray[np.float32],
    form: str,
    codec: str,
    rate: int,
    *,
    layout: str = "stereo",
) -> bytes:
    """Encodes samples at `rate` with FFmpeg; each channel has them."""
    file = BytesIO()
    with av.open(file, "w", format=form) as container:
        stream = container.add_stream(codec, rate=rate, layout=layout)
        assert isinstance(stream, av.AudioStream)
        stream.codec_context.options = {"strict": "experimental"}  # FFmpeg's encoder of Vorbis
        frame = av.AudioFrame.from_ndarray(
            np.repeat(samples, 2 if layout == "stereo" else 1)[None], format="flt", layout=layout
        )
        frame.sample_rate = rate
        stream.codec_context.open()
        converter = av.AudioResampler(
            stream.format.name, layout, rate, stream.codec_context.frame_size or None
        )
        for converted in (*converter.resample(frame), *converter.resample(None)):
            container.mux(stream.encode(converted))
        container.mux(stream.encode(None))
    return file.getvalue()


def make_mp3(seconds: float = 2) -> bytes:
    return encode(make_tone(1000, seconds, 44_100), "mp3", "libmp3lame", 44_100)


def make_film(*, num_streams: int = 1) -> bytes:
    """Returns a film without sound."""
    file = BytesIO()
    with av.open(file, "w", format="matroska") as container:
        streams = [container.add_stream("mjpeg", rate=10) for _ in range(num_streams)]
        for stream in streams:
            stream.width, stream.height, stream.pix_fmt = 16, 16, "yuvj420p"
        frame = av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8), format="rgb24")
        for stream in streams:
            container.mux(stream.encode(frame.reformat(format="yuvj420p")))
            container.mux(stream.encode(None))
    return file.getvalue()
