"""Reads content parts with a video: one file, or a list of frames, each by its URL.

Clients write it in three ways: `video_url` as in vLLM, an object or a text; `video` as in Qwen, a
text or a list of frames; and in either a data URL of the type video/jpeg, with frames separated by
commas.
"""

from collections.abc import Mapping

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.parts import MOST_VIDEO_FRAMES, MediaPart, VideoPart
from ouzel.prompts.media_readers.wrong_values import describe_value, invalid

KINDS = ("video_url", "video")

_MIN_FPS, _MAX_FPS = 0.1, 60.0
_FRAMES = "data:video/jpeg;base64,"
# Settings of qwen-vl-utils, Qwen's API and vLLM. They would change the frames that the model reads.
_UNSUPPORTED = (
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
    """Reads the fields of a video. Raises InvalidRequest."""
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
    """Refuses a number of frames beyond any server's limit, before millions of parts are made."""
    if num_frames > MOST_VIDEO_FRAMES:
        raise InvalidRequest(
            f"must have <= {MOST_VIDEO_FRAMES} frames, given {num_frames}", field=path
        )


def _fps(settings: Mapping[str, object], path: str) -> float | None:
    """Reads `fps` from the fields beside a URL. Raises InvalidRequest for settings that would be
    ignored.
    """
    for key in _UNSUPPORTED:
        if settings.get(key) not in (None, "auto"):
            given = describe_value(settings[key])
            raise InvalidRequest(
                f"is not supported by this server, given {given}", field=f"{path}.{key}"
            )
    value = settings.get("fps")
    if value is None:
        return None
    expected = f"a number from {_MIN_FPS:g} to {_MAX_FPS:g}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(f"{path}.fps", expected, value)
    if not _MIN_FPS <= value <= _MAX_FPS:
        raise invalid(f"{path}.fps", expected, value)
    return float(value)
