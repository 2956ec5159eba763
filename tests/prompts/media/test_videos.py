"""Videos become frames or refusals that name the part, within limits."""

import base64
import struct
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from io import BytesIO
from pathlib import Path

import av
import numpy as np
import pytest
from PIL.ExifTags import Base
from PIL.Image import Exif

from ouzel.errors import InvalidRequest, Overloaded
from ouzel.prompts.media.container_job import frame_image
from ouzel.prompts.media.parts import MediaPart, VideoPart
from ouzel.prompts.media.video import Video
from ouzel.prompts.media.video_loader import Frames, VideoLoader
from tests.prompts.media.files import PATH, chunk, plain, png
from tests.prompts.media.films import make_film, mirror, moving, read_number, turn_sideways
from tests.prompts.media.servers import loader

NEAREST = 0
THREADS = Path("/proc/self/task")


async def load_frames(data: bytes, numbers: list[int], **options: object) -> tuple[Video, Frames]:
    """Loads a video as a request does, and decodes some frames."""
    media = loader(**options)  # type: ignore[arg-type]  # fields of MediaConfig
    videos = VideoLoader(media)
    try:
        url = "data:;base64," + base64.b64encode(data).decode()
        [video] = await videos.load([VideoPart(PATH, MediaPart(PATH, url))])
        return video, await videos.frames(video, numbers, (video.width, video.height), NEAREST)
    finally:
        videos.close()
        media.close()


KINDS: dict[str, Callable[[], bytes]] = {
    "MP4": lambda: make_film(40),
    "MOV": lambda: make_film(40, codec="mpeg4", form="mov"),
    "WebM": lambda: make_film(40, codec="libvpx", form="webm"),
    "Matroska": lambda: make_film(40, form="matroska"),
    "GIF": lambda: moving("GIF", 40, duration=100),
    "WebP": lambda: moving("WEBP", 40, duration=100, lossless=True),
    "PNG": lambda: moving("PNG", 40, duration=100),
    "PNG with a cover": lambda: moving("PNG", 41, duration=100, default_image=True),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_the_requested_frames_are_taken(kind: str) -> None:
    numbers = [0, 1, 13, 38, 39]

    video, frames = await load_frames(KINDS[kind](), numbers)

    assert (video.width, video.height, video.num_frames) == (64, 32, 40)
    assert video.rate == pytest.approx(10) and video.time_s(30) == pytest.approx(3)
    assert frames.shape == (5, 32, 64, 3)
    first = int("cover" in kind)  # number 0 is the cover
    assert [read_number(tuple(frame[24, 48].tolist())) for frame in frames] == [
        number + first for number in numbers
    ]
    assert (frames[:, 4, 4] > 240).all()


async def test_frames_are_upright() -> None:
    video, frames = await load_frames(turn_sideways(make_film(3)), [2])

    assert (video.width, video.height) == (32, 64)
    assert (frames[0, 4, 28] > 240).all() and not (frames[0, 4, 4] > 240).all()


async def test_moving_pictures_are_upright() -> None:
    exif = Exif()
    exif[Base.Orientation] = 6

    video, frames = await load_frames(moving("PNG", 2, duration=100, exif=exif.tobytes()), [1])

    assert (video.width, video.height) == (32, 64)
    assert (frames[0, 4, 28] > 240).all() and not (frames[0, 4, 4] > 240).all()


async def test_frames_may_be_mirrored() -> None:
    video, frames = await load_frames(mirror(make_film(3)), [2])

    assert (video.width, video.height) == (64, 32)
    assert (frames[0, 4, 60] > 240).all() and not (frames[0, 4, 4] > 240).all()


@pytest.mark.parametrize(
    ("pixel", "size"),
    [(Fraction(4, 3), (85, 32)), (Fraction(1, 2), (64, 64)), (Fraction(100), (64, 32))],
)
async def test_pixels_may_be_no_squares(pixel: Fraction, size: tuple[int, int]) -> None:
    video, _ = await load_frames(make_film(3, pixel=pixel), [2])

    assert (video.width, video.height) == size


@pytest.mark.parametrize(("codec", "form"), [("libx264", "mp4"), ("libvpx", "webm")])
async def test_frames_of_a_container_begin_when_it_says(codec: str, form: str) -> None:
    starts_ms = [*range(0, 500, 100), 4000, 900_000]

    video, _ = await load_frames(make_film(7, codec=codec, form=form, starts_ms=starts_ms), [6])

    assert [round(1000 * video.time_s(number)) for number in range(7)] == starts_ms
    # The header says 10, the rate of the first frames.
    assert video.rate == pytest.approx(6 / 900)


@pytest.mark.skipif(not THREADS.is_dir(), reason="this system does not tell its threads")
def test_a_frame_is_made_without_further_threads() -> None:
    """The stack of a thread counts as memory of the job, and PyAV would start one per processor."""
    with av.open(BytesIO(make_film(1)), "r") as container:
        frame = next(container.decode(video=0))
        before = len([*THREADS.iterdir()])

        made = frame_image(frame)

        assert (made.size, len([*THREADS.iterdir()])) == ((64, 32), before)


async def test_frames_may_be_shown_for_unequal_times() -> None:
    video, _ = await load_frames(moving("GIF", 4, duration=[500, 10, 200, 300]), [0])

    starts_s = [round(video.time_s(number), 3) for number in range(4)]
    assert starts_s == [0, 0.5, 0.6, 0.8]  # a frame of 10 ms is shown for 100 ms
    assert video.rate == pytest.approx(4 / 1.1)


async def test_a_picture_that_does_not_move_is_one_frame() -> None:
    video, frames = await load_frames(plain(), [0])

    assert (video.num_frames, frames.shape) == (1, (1, 3, 4, 3))


def break_middle(data: bytes) -> bytes:
    """Overwrites the middle half of the data with noise."""
    middle = len(data) // 2
    noise = np.random.default_rng(1).integers(0, 256, middle // 2, np.uint8).tobytes()
    return data[: middle - len(noise) // 2] + noise + data[middle + len(noise) - len(noise) // 2 :]


def many_small_chunks() -> bytes:
    return png(
        4,
        4,
        bytes(13 * 4),
        before_data=chunk(b"acTL", struct.pack(">II", 2, 0)) + chunk(b"teXt", b"") * 80_000,
    )


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (
        lambda: b"",
        "must be a video (MP4, MOV, WebM or Matroska, or a GIF, WEBP or PNG that moves), given 0",
    ),
    "a text": (lambda: b"#EXTM3U\n#EXTINF:1\nhttp://127.0.0.1/a.ts\n", "must be a video (MP4"),
    "a playlist that says it is an MP4": (
        lambda: b"\0\0\0\x08ftypconcat\nfile /etc/hostname\n",
        "must be a video that is complete",
    ),
    "without an index": (lambda: make_film(20)[:-900], "must be a video "),
    "its beginning": (lambda: make_film(20)[:64], "must be a video that is complete"),
    "Matroska of noise": (
        lambda: b"\x1a\x45\xdf\xa3" + bytes(range(256)) * 50,
        "must be a video that is complete",
    ),
    "a sound": (lambda: make_film(2).replace(b"vide", b"soun"), "must be a video "),
    "another codec": (
        lambda: make_film(2, codec="ffv1", form="matroska"),
        "must be a video of the codecs h264, hevc",
    ),
    "large frames": (
        lambda: make_film(1, (1024, 512)),
        "must have frames of which two have <= 1000000 pixels (max_media_pixels)",
    ),
    "a large moving picture": (
        lambda: moving("PNG", 2, (1024, 512)),
        "must have frames of which two have <= 1000000 pixels",
    ),
    "a GIF that is cut off": (
        lambda: moving("GIF", 9)[:-400],
        "must be a whole video, given a file that is cut off or broken",
    ),
    "a PNG of noise": (
        lambda: break_middle(moving("PNG", 9)),
        "must be a whole video, given a file that is cut off or broken",
    ),
    "chunks": (many_small_chunks, "must be a picture"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_files_are_refused_by_the_name_of_their_part(name: str) -> None:
    make_file, complaint = HOSTILE[name]
    data = make_file()
    began = time.process_time()

    with pytest.raises(InvalidRequest) as raised:
        await load_frames(data, [8], max_media_pixels=1_000_000)

    assert str(raised.value).startswith(f"{PATH} {complaint}")
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "make_file",
    [lambda: make_film(9), lambda: moving("GIF", 9), lambda: plain(99, 90, file_format="BMP")],
    ids=["MP4", "GIF", "a picture"],
)
async def test_files_count_among_all_that_the_server_holds(make_file: Callable[[], bytes]) -> None:
    data = make_file()
    with pytest.raises(
        Overloaded, match=rf"the server has too many media: 0 bytes .* and {len(data)} more"
    ):
        await load_frames(data, [0], max_media_bytes_total=1024)


@pytest.mark.release("videos: limits of time")
@pytest.mark.parametrize(
    "make_file",
    [lambda: make_film(600, (640, 320)), lambda: moving("GIF", 60, (640, 320))],
    ids=["MP4", "GIF"],
)
async def test_decoding_has_a_limit_of_time(make_file: Callable[[], bytes]) -> None:
    data = make_file()
    with pytest.raises(InvalidRequest) as raised:
        await load_frames(data, [*range(0, 60, 2)], video_timeout_s=0.02)

    assert (
        str(raised.value)
        == f"{PATH} must be a video that is decoded in <= 0.02 s (video_timeout_s)"
    )


async def test_without_the_extra_containers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)

    with pytest.raises(InvalidRequest, match="this server needs its extra video"):
        await load_frames(make_film(2), [0])
    assert len((await load_frames(moving("GIF", 2), [0]))[1]) == 1
