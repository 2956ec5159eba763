"""Names the formats of written sound files, and their media types."""

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Literal

from ouzel.errors import InvalidRequest
from ouzel.extras import install_hint

# the formats of OpenAI's field `response_format`
SpeechFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
# wav_float: WAV with IEEE float32 samples
FileFormat = SpeechFormat | Literal["wav_float"]

MEDIA_TYPES: Mapping[FileFormat, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
    "wav_float": "audio/wav",
}
_WITHOUT_FFMPEG: frozenset[FileFormat] = frozenset({"wav", "pcm", "wav_float"})


def choose_format(wanted: SpeechFormat | None) -> SpeechFormat:
    """Returns the format of an answer: without a wish MP3, or WAV on a server without PyAV.

    Raises InvalidRequest for a format that needs PyAV on a server without it.
    """
    has_ffmpeg = find_spec("av") is not None
    if wanted is None:
        return "mp3" if has_ffmpeg else "wav"
    if wanted not in _WITHOUT_FFMPEG and not has_ffmpeg:
        raise InvalidRequest(
            "must be wav or pcm: to write other sound files this server needs its extra audio "
            f"({install_hint('audio')}), given {wanted!r}",
            field="response_format",
        )
    return wanted
