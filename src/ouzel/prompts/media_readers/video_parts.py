"""A content part that names a video is read: a file by its URL, or frames by theirs.

Clients write it in three ways: `video_url` as vLLM has it, an object or a text; `video` as Qwen has it, a text or a
list of frames; and in either a data URL of the type video/jpeg, whose frames stand one behind the other, with commas.
"""

from collections.abc import Mapping

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.parts import MOST_VIDEO_FRAMES, MediaPart, VideoPart
from ouzel.prompts.media_readers.wrong_values import invalid, shown

KINDS = ("video_url", "video")

_MIN_FPS, _MAX_FPS = 0.1, 60.0
_FRAMES = "data:video/jpeg;base64,"
_UNSUPPORTED = (  # of qwen-vl-utils, Qwen's own API and vLLM: they would change what the model is shown
    "detail",
    "num_frames",
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
    fps = _fps(part, path)
    kind = str(part["type"])
    value, own_path = part.get(kind), f"{path}.{kind}"
    if isinstance(value, dict):
        inner_fps = _fps(value, own_path)
        fps = fps if inner_fps is None else inner_fps
        value, own_path = value.get("url"), f"{own_path}.url"
    if isinstance(value, list) and kind == "video":
        return VideoPart(own_path, _frames(value, own_path), fps)
    if not isinstance(value, str) or not value:
        raise invalid(own_path, "a URL, a data URL or a path", value)
    if value[: len(_FRAMES)].lower() == _FRAMES:
        _check_number(value.count(","), own_path)
        pieces = value[len(_FRAMES) :].split(",")
        return VideoPart(
            own_path,
            tuple(MediaPart(own_path, f"data:image/jpeg;base64,{each}") for each in pieces),
            fps,
        )
    return VideoPart(own_path, MediaPart(own_path, value), fps)


def _frames(values: list[object], path: str) -> tuple[MediaPart, ...]:
    if not values:
        raise invalid(path, "a non-empty list of frames", values)
    _check_number(len(values), path)
    return tuple(
        MediaPart(f"{path}[{number}]", _url(each, path, number))
        for number, each in enumerate(values)
    )


def _url(value: object, path: str, number: int) -> str:
    if not isinstance(value, str) or not value:
        raise invalid(f"{path}[{number}]", "a URL, a data URL or a path", value)
    return value


def _check_number(num_frames: int, path: str) -> None:
    """Refuses what no server takes, before millions of parts are made of it."""
    if num_frames > MOST_VIDEO_FRAMES:
        raise InvalidRequest(
            f"must have <= {MOST_VIDEO_FRAMES} frames, given {num_frames}", field=path
        )


def _fps(settings: Mapping[str, object], path: str) -> float | None:
    """Reads it from what stands beside a URL, where settings that would be ignored are refused."""
    for key in _UNSUPPORTED:
        if settings.get(key) not in (None, "auto"):
            given = shown(settings[key])
            raise InvalidRequest(
                f"is not supported by this server, given {given}", field=f"{path}.{key}"
            )
    value = settings.get("fps")
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not _MIN_FPS <= value <= _MAX_FPS
    ):
        raise invalid(f"{path}.fps", f"a number from {_MIN_FPS:g} to {_MAX_FPS:g}", value)
    return float(value)
