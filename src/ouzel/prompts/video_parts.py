"""A content part that names a video is read: a file by its URL, or frames by theirs.

Clients write it in three ways: `video_url` as vLLM has it, an object or a text; `video` as Qwen has it, a text or a
list of frames; and in either a data URL of the type video/jpeg, whose frames stand one behind the other, with commas.
"""

from collections.abc import Mapping

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.parts import MOST_VIDEO_FRAMES, MediaPart, VideoPart
from ouzel.prompts.wrong_values import invalid, shown

KINDS = ("video_url", "video")

_MIN_FPS, _MAX_FPS = 0.1, 60.0
_FRAMES = "data:video/jpeg;base64,"
_UNSUPPORTED = (  # of qwen-vl-utils and Qwen's own API: they would change what the model is shown
    "nframes",
    "min_frames",
    "max_frames",
    "min_pixels",
    "max_pixels",
    "total_pixels",
    "resized_height",
    "resized_width",
    "video_start",
    "video_end",
    "sample_fps",
    "raw_fps",
)


def video_part(part: Mapping[str, object], path: str) -> VideoPart:
    """Raises InvalidRequest."""
    for key in _UNSUPPORTED:
        if part.get(key) is not None:
            given = shown(part[key])
            raise InvalidRequest(f"is not supported by this server, given {given}", field=f"{path}.{key}")
    fps = _fps(part.get("fps"), f"{path}.fps")
    kind = str(part["type"])
    value, own_path = part.get(kind), f"{path}.{kind}"
    if isinstance(value, dict):
        value, own_path = value.get("url"), f"{own_path}.url"
    if isinstance(value, list) and kind == "video":
        if not value:
            raise invalid(own_path, "a non-empty list of frames", value)
        _check_number(len(value), own_path)
        frames = [MediaPart(f"{own_path}[{number}]", _url(each, own_path, number)) for number, each in enumerate(value)]
        return VideoPart(own_path, tuple(frames), fps)
    if not isinstance(value, str) or not value:
        raise invalid(own_path, "a URL, a data URL or a path", value)
    if value[: len(_FRAMES)].lower() == _FRAMES:
        _check_number(value.count(","), own_path)
        pieces = value[len(_FRAMES) :].split(",")
        return VideoPart(own_path, tuple(MediaPart(own_path, f"data:image/jpeg;base64,{each}") for each in pieces), fps)
    return VideoPart(own_path, MediaPart(own_path, value), fps)


def _url(value: object, path: str, number: int) -> str:
    if not isinstance(value, str) or not value:
        raise invalid(f"{path}[{number}]", "a URL, a data URL or a path", value)
    return value


def _check_number(num_frames: int, path: str) -> None:
    """Refuses what no server takes, before millions of parts are made of it."""
    if num_frames > MOST_VIDEO_FRAMES:
        raise InvalidRequest(f"must have <= {MOST_VIDEO_FRAMES} frames, given {num_frames}", field=path)


def _fps(value: object, path: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not _MIN_FPS <= value <= _MAX_FPS:
        raise invalid(path, f"a number from {_MIN_FPS:g} to {_MAX_FPS:g}", value)
    return float(value)
