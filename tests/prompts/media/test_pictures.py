"""Pictures are decoded in a process with limits, not in the process that answers requests."""

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from typing import Any  # a fault is not a Preparation

import pytest

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.picture import Picture, PictureLimits
from ouzel.prompts.media.pictures import Pictures
from ouzel.prompts.media.pillow import FORMATS
from ouzel.prompts.media.pixels import Resized
from ouzel.prompts.media.video import Animation, read_animation
from tests.prompts.media.files import PATH, plain
from tests.prompts.media.films import moving

PROGRAM = """
import asyncio, base64, json, sys
from ouzel.config import MediaConfig
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import MediaPart, VideoPart
from ouzel.prompts.media.pixels import Resized
from ouzel.prompts.media.video_loader import VideoLoader

async def main():
    media, seen = MediaLoader(MediaConfig()), []
    videos = VideoLoader(media)
    *files, moving = json.load(sys.stdin)
    parts = [MediaPart("field", "data:;base64," + file) for file in files]
    pictures = await media.load(parts)
    pixel = Resized((1, 1), 0)
    made = await media.decode(
        pictures, lambda picture: media.decoders.prepare(picture, pixel)
    )
    seen += [pixels[0, 0].tolist() for [pixels] in made]
    [video] = await videos.load([VideoPart("field", MediaPart("field", "data:;base64," + moving))])
    seen += [len(await videos.frames(video, [0, 2], (4, 4), 0))]
    print(json.dumps([seen, "PIL._webp" in sys.modules]))
    videos.close()
    media.close()

def refuse(*args):
    raise AssertionError("pixels are decoded where requests are answered")

from PIL import Image
Image._getdecoder = refuse
asyncio.run(main())
"""


def encode(data: bytes) -> str:
    return b64encode(data).decode()


def test_the_process_that_answers_requests_decodes_nothing() -> None:
    files = [
        plain(40, 40, (0, 0, 255), file_format) for file_format in FORMATS if file_format != "JPEG"
    ]
    given = json.dumps([encode(file) for file in (*files, moving("GIF", 3, duration=100))])

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=given, capture_output=True, text=True, check=True
    )

    assert json.loads(done.stdout) == [
        [[0, 0, 255], [0, 0, 255], [0, 0, 255], [0, 0, 255], 2],
        False,
    ]


@pytest.fixture
def pictures() -> Iterator[Pictures]:
    pictures = Pictures(PictureLimits(max_bytes=2**24, max_pixels=10**7))
    yield pictures
    pictures.close()


class EndsItsProcess:
    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (7,)


class TakesMemory:
    def __reduce__(self) -> tuple[object, tuple[int]]:
        return bytearray, (2**34,)


class TakesForEver:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, ("[None for _ in iter(int, 1)]",)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            EndsItsProcess(),
            f"{PATH} must be a whole picture, given a file that is cut off or broken",
        ),
        (TakesMemory(), f"{PATH} must be a whole picture, given a file that takes too much memory"),
    ],
)
def test_a_decoder_that_fails_takes_nothing_else_with_it(
    pictures: Pictures, fault: Any, message: str
) -> None:
    """The fault is raised in the process of the job, before there are pixels."""
    first = pictures.read(plain(30, 20), PATH)

    with pytest.raises(InvalidRequest) as raised:
        pictures.prepare(first, fault)

    assert str(raised.value) == message
    [pixels] = pictures.prepare(pictures.read(plain(30, 20), PATH), Resized((3, 2), 0))
    assert pixels.shape == (2, 3, 3)


def test_a_video_that_takes_too_long_is_refused(pictures: Pictures) -> None:
    data = moving("GIF", 3, duration=100)
    video = read_animation(
        data, PATH, PictureLimits(max_bytes=2**24, max_pixels=10**7), pictures.read
    )
    assert isinstance(video.content, Animation)

    with pytest.raises(
        InvalidRequest, match=r"must be a video that is decoded in <= 0\.2 s \(video_timeout_s\)"
    ):
        pictures.frames(video, video.content, [0], TakesForEver(), 0.2)  # type: ignore[arg-type]


def test_the_header_is_found_as_it_is_shown(pictures: Pictures) -> None:
    picture = pictures.read(plain(30, 20, file_format="WEBP"), PATH)

    assert (picture.width, picture.height, picture.format, picture.orientation) == (
        30,
        20,
        "WEBP",
        1,
    )
    assert picture == Picture(picture.digest, picture.data, 30, 20, "WEBP", 1, PATH)
    with pytest.raises(InvalidRequest, match=r"^other must be a picture"):
        pictures.read(b"no picture", "other")
