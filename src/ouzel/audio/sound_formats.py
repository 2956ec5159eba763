"""Recognises the formats of sound files by their first bytes."""

from enum import Enum

_ID3_HEADER_BYTES = 10
_MAX_PADDING = 2**16  # zeros that some encoders write before the first frame of an MP3
_MP4_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip")


class SoundFormat(Enum):
    """Formats of sound files. The values are FFmpeg's names of their demuxers."""

    WAV = "wav"  # read without FFmpeg
    MP3 = "mp3"  # layers I, II and III
    MP4 = "mov"  # M4A and 3GP as well
    MATROSKA = "matroska"  # WebM as well
    OGG = "ogg"
    FLAC = "flac"
    AAC = "aac"  # a sequence of ADTS frames
    MPEG = "mpeg"  # a program stream
    AIFF = "aiff"


# The keys are the bytes [0, 4) and [8, 12).
_FORMS = {
    (b"RIFF", b"WAVE"): SoundFormat.WAV,
    (b"RF64", b"WAVE"): SoundFormat.WAV,
    (b"BW64", b"WAVE"): SoundFormat.WAV,
    (b"FORM", b"AIFF"): SoundFormat.AIFF,
    (b"FORM", b"AIFC"): SoundFormat.AIFF,
}
_MAGICS = {
    b"OggS": SoundFormat.OGG,
    b"\x1aE\xdf\xa3": SoundFormat.MATROSKA,
    b"\x00\x00\x01\xba": SoundFormat.MPEG,
}
FORMAT_NAMES = "WAV, MP3, MP4, M4A, MPEG, WebM, Matroska, Ogg, Opus, FLAC, AAC, AIFF"


def find_format(data: bytes) -> SoundFormat | None:
    """Returns the format of a file, or None for bytes that begin like none of them."""
    if (form := _FORMS.get((data[:4], data[8:12]))) is not None:
        return form
    if (format_ := _MAGICS.get(data[:4])) is not None:
        return format_
    if data[4:8] in _MP4_BOXES:
        return SoundFormat.MP4
    return _find_frames(data)


def _find_frames(data: bytes) -> SoundFormat | None:
    """Finds formats that may begin with ID3 tags or zeros."""
    begin = 0
    while data[begin : begin + 3] == b"ID3":
        sizes = data[begin + 6 : begin + _ID3_HEADER_BYTES]
        begin += _ID3_HEADER_BYTES + sum(
            (byte & 0x7F) << 7 * (3 - place) for place, byte in enumerate(sizes)
        )
    padded = data[begin : begin + _MAX_PADDING]
    frame = padded.lstrip(b"\0")[:4]
    if frame == b"fLaC":
        return SoundFormat.FLAC
    if len(frame) < 4 or frame[0] != 0xFF or frame[1] & 0xE0 != 0xE0:
        return SoundFormat.MP3 if begin else None
    if frame[1] & 0xF6 == 0xF0:
        return SoundFormat.AAC
    has_layer = bool(frame[1] & 0x06)
    has_version = frame[1] & 0x18 != 0x08
    return SoundFormat.MP3 if has_layer and has_version else None
