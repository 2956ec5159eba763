"""Reads content parts with a sound: `input_audio` as in OpenAI's chats and responses, and
`audio_url` as in vLLM, an object or a text.

The bytes of a file tell its format. So `format` may be absent, and it must name a kind of file that
this server reads.
"""

from collections.abc import Mapping

from ouzel.prompts.media.parts import SoundPart
from ouzel.prompts.media_readers.wrong_values import invalid

KINDS = ("input_audio", "audio_url")

_FORMATS = (
    *("wav", "mp3", "flac", "ogg", "opus", "m4a", "mp4", "aac", "webm", "aiff", "mpeg", "mpga"),
)


def sound_part(part: Mapping[str, object], path: str) -> SoundPart:
    """Reads the fields of a sound. Raises InvalidRequest."""
    kind = str(part["type"])
    value, path = part.get(kind), f"{path}.{kind}"
    if kind == "input_audio":
        return _inline_sound(value, path)
    if isinstance(value, dict):
        value, path = value.get("url"), f"{path}.url"
    if not isinstance(value, str) or not value:
        raise invalid(path, "a URL, a data URL or a path", value)
    return SoundPart(path, value)


def _inline_sound(value: object, path: str) -> SoundPart:
    if not isinstance(value, dict):
        raise invalid(path, "an object with data and format", value)
    data, format_ = value.get("data"), value.get("format")
    if not isinstance(data, str) or not data:
        raise invalid(f"{path}.data", "the base64 of a sound file", data)
    if format_ is not None and format_ not in _FORMATS:
        raise invalid(f"{path}.format", f"one of {', '.join(_FORMATS)}", format_)
    is_url = data[:5].lower() == "data:"
    return SoundPart(f"{path}.data", data if is_url else f"data:audio/*;base64,{data}")
