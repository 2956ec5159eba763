"""Encodes samples with FFmpeg into a file that cannot be sought: MP3, Ogg Opus, AAC, FLAC.

PyAV is the extra `audio`. Each packet leaves the muxer at once, so that a client gets a sentence as
soon as it is encoded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.writing.wav_writer import clip_samples

if TYPE_CHECKING:
    from av import AudioFrame, AudioResampler
    from av.audio.stream import AudioStream
    from av.container import OutputContainer

EncodedFormat = Literal["mp3", "opus", "aac", "flac"]
_STREAMINFO_AT = 8
_SILENCE_PARTS = 50  # 20 ms
_USUAL_RATE = 48_000  # every lossy codec has it


@dataclass(frozen=True, slots=True)
class _Codec:
    """FFmpeg's names of an encoder and a muxer, and the options of the muxer."""

    encoder: str
    muxer: str
    bits_per_s: int = 0  # 0: a codec without loss
    options: Mapping[str, str] = field(default_factory=dict)


_CODECS: Mapping[EncodedFormat, _Codec] = {
    # The tag of Xing and the tags of ID3 describe whole files.
    "mp3": _Codec("libmp3lame", "mp3", 64_000, {"write_xing": "0", "id3v2_version": "0"}),
    # A page of Ogg has one packet of 20 ms instead of a second.
    "opus": _Codec("libopus", "ogg", 48_000, {"page_duration": "20000"}),
    "aac": _Codec("aac", "adts", 96_000),
    "flac": _Codec("flac", "flac", options={"metadata_header_padding": "0"}),
}


class FfmpegWriter:
    """Encodes one mono sound."""

    def __init__(self, format_: EncodedFormat, rate: int) -> None:
        """`rate` is the rate of the samples in Hz. Raises ImportError without PyAV."""
        import av  # noqa: PLC0415  an extra

        codec = _CODECS[format_]
        self._rate = rate
        self._sink = _Sink()
        self._num_samples = 0
        options = {"flush_packets": "1", **codec.options}
        self._container: OutputContainer = av.open(
            self._sink, "w", format=codec.muxer, options=options
        )
        try:
            rates = av.codec.Codec(codec.encoder, "w").audio_rates
            own_rate = rate if rates is None or rate in rates else _USUAL_RATE
            stream = self._container.add_stream(codec.encoder, rate=own_rate)
            assert isinstance(stream, av.AudioStream)
            self._stream: AudioStream = stream
            context = self._stream.codec_context
            context.layout = "mono"
            context.thread_count = 1
            if codec.bits_per_s:
                context.bit_rate = codec.bits_per_s
            self._container.start_encoding()
            self._resampler: AudioResampler = av.AudioResampler(
                context.format.name, "mono", own_rate, frame_size=context.frame_size or None
            )
        except BaseException:
            self._container.close()
            raise

    def write(self, samples: NDArray[np.float32]) -> bytes:
        import av  # noqa: PLC0415  an extra

        if len(samples):
            frame = av.AudioFrame.from_ndarray(clip_samples(samples)[None], "flt", "mono")
            frame.sample_rate = self._rate
            frame.pts = self._num_samples
            self._num_samples += len(samples)
            self._encode(frame)
        return self._sink.take()

    def finish(self) -> bytes:
        """Returns the rest of the file. A file without samples gets a moment of silence: players
        refuse files without frames.
        """
        silence = b""
        if not self._num_samples:
            silence = self.write(np.zeros(self._rate // _SILENCE_PARTS, np.float32))
        self._encode(None)  # samples that the resampler holds
        for packet in self._stream.encode(None):
            self._container.mux(packet)
        self._container.close()
        return silence + self._sink.take()

    def close(self) -> None:
        self._container.close()

    def _encode(self, frame: "AudioFrame | None") -> None:
        for resampled in self._resampler.resample(frame):
            for packet in self._stream.encode(resampled):
                self._container.mux(packet)


def fill_num_samples(first: bytearray, num_samples: int) -> None:
    """Writes the number of samples into the header of a FLAC file, in its first piece.

    STREAMINFO (RFC 9639, section 8.2) is the first block, behind 8 bytes. The number has 36 bits
    and begins in the middle of its byte 13.
    """
    begin = _STREAMINFO_AT + 13
    first[begin] = first[begin] & 0xF0 | num_samples >> 32 & 0x0F
    first[begin + 1 : begin + 5] = (num_samples & 0xFFFFFFFF).to_bytes(4)


class _Sink:
    """A file without `seek`, whose bytes are taken away."""

    def __init__(self) -> None:
        self._written = bytearray()

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._written)
        self._written.clear()
        return taken
