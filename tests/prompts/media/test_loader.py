"""Parts are loaded and decoded within limits that all requests share."""

import asyncio
import base64
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from ouzel.errors import InvalidRequest, Overloaded
from ouzel.prompts.media.loader import MediaLoader
from ouzel.prompts.media.parts import MediaPart
from ouzel.prompts.media.picture import Picture
from ouzel.prompts.media.pixels import BYTES_PER_PIXEL, Resized
from tests.prompts.media.files import plain
from tests.prompts.media.servers import loader

ONE_PIXEL = Resized((1, 1), 0)
RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def data_url(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


def parts(*urls: str) -> list[MediaPart]:
    return [MediaPart(f"field[{number}]", url) for number, url in enumerate(urls)]


async def decode_colours(media: MediaLoader, pictures: Sequence[Picture]) -> list[tuple[int, ...]]:
    made = await media.decode(pictures, lambda picture: media.decoders.prepare(picture, ONE_PIXEL))
    return [tuple(pixel[0, 0].tolist()) for [pixel] in made]


def colours(*wanted: tuple[int, int, int]) -> list[MediaPart]:
    return parts(*(data_url(plain(colour=each)) for each in wanted))


async def test_pictures_come_in_the_order_of_their_parts(tmp_path: Path) -> None:
    (tmp_path / "green").write_bytes(plain(colour=GREEN))
    media = loader(allowed_local_media_path=str(tmp_path))

    pictures = await media.load(
        parts(data_url(plain(colour=RED)), "green", data_url(plain(colour=BLUE)), "green")
    )

    assert await decode_colours(media, pictures) == [RED, GREEN, BLUE, GREEN]
    assert [picture.path for picture in pictures] == [
        "field[0]",
        "field[1]",
        "field[2]",
        "field[1]",
    ]
    media.close()


async def test_without_parts_there_are_no_pictures() -> None:
    media = loader()
    assert (await media.load([]), await decode_colours(media, [])) == ([], [])
    media.close()


async def test_too_many_pictures_are_refused() -> None:
    media = loader(max_images=2)

    assert len(await media.load(colours(RED, GREEN))) == 2
    with pytest.raises(InvalidRequest) as raised:
        await media.load(colours(RED, GREEN, BLUE, RED))
    assert (
        str(raised.value)
        == "field[2] must be one of <= 2 pictures in a request (max_images), given 4"
    )
    media.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"max_media_bytes": 1024},
            r"^field\[1\] must have <= 1024 bytes \(max_media_bytes\), given 27054$",
        ),
        (
            {"max_media_pixels": 12},
            r"^field\[1\] must have <= 12 pixels \(max_media_pixels\), given 100x90$",
        ),
    ],
)
async def test_the_limits_come_from_the_options(options: dict[str, int], message: str) -> None:
    media = loader(None, None, **options)

    with pytest.raises(InvalidRequest, match=message):
        await media.load(parts(data_url(plain(4, 3)), data_url(plain(100, 90, file_format="BMP"))))
    media.close()


async def test_a_picture_that_is_cut_off_is_refused_when_it_is_decoded() -> None:
    media = loader()
    pictures = await media.load(
        parts(data_url(plain()), data_url(plain(100, 90, file_format="BMP")[:-500]))
    )

    with pytest.raises(InvalidRequest) as raised:
        await decode_colours(media, pictures)
    assert (
        str(raised.value)
        == "field[1] must be a whole picture, given a BMP file that is cut off or broken"
    )
    media.close()


async def test_the_same_file_is_decoded_once() -> None:
    media = loader()
    decoded: list[Picture] = []

    def prepare(picture: Picture) -> int:
        decoded.append(picture)
        return len(decoded)

    pictures = await media.load(parts(data_url(plain()), data_url(plain()) + " "))

    assert await media.decode(pictures, prepare) == [1, 1]
    assert [picture.path for picture in decoded] == ["field[0]"]
    media.close()


async def test_decoding_runs_beside_the_event_loop_and_may_refuse() -> None:
    media = loader()
    pictures = await media.load(colours(RED))

    async def thread_name() -> list[str]:
        return await media.decode(pictures, lambda picture: threading.current_thread().name)

    def refuse(picture: Picture) -> None:
        raise InvalidRequest("must be nicer", field=picture.path)

    assert (await thread_name())[0].startswith("pictures")
    with pytest.raises(InvalidRequest, match=r"^field\[0\] must be nicer$"):
        await media.decode(pictures, refuse)
    media.close()


class Crowd:
    """A job that counts the pixels in preparation at the same time."""

    def __init__(self) -> None:
        self.num_pixels = 0
        self.most_pixels = 0
        self._lock = threading.Lock()

    def prepare(self, picture: Picture) -> None:
        with self._lock:
            self.num_pixels += picture.num_pixels
            self.most_pixels = max(self.most_pixels, self.num_pixels)
        time.sleep(0.01)
        with self._lock:
            self.num_pixels -= picture.num_pixels


@pytest.mark.parametrize(("num_pictures_at_a_time", "most"), [(1, 1), (1.9, 1), (2, 2), (0.5, 1)])
async def test_pictures_share_the_memory_for_decoding(
    num_pictures_at_a_time: float, most: int
) -> None:
    media = loader(max_media_memory_bytes=int(10_000 * BYTES_PER_PIXEL * num_pictures_at_a_time))
    crowd = Crowd()
    pictures = await media.load(
        parts(*(data_url(plain(100, 100, (number, 0, 0))) for number in range(12)))
    )

    await asyncio.gather(*(media.decode([picture], crowd.prepare) for picture in pictures))

    assert crowd.most_pixels <= most * 10_000
    media.close()


def is_held(media: MediaLoader) -> bool:
    try:
        media.held_bytes.add(media, 1024)
    except Overloaded:
        return True
    return False


async def test_the_file_of_a_picture_that_is_refused_is_dropped_at_once() -> None:
    media = loader(max_media_bytes_total=1024)

    async def see() -> None:
        await decode_colours(media, await media.load(parts(data_url(plain(50, 50)[:-40]))))

    gc.disable()  # the bytes must go at once: they count until they are freed
    try:
        with suppress(InvalidRequest):
            await see()

        async with asyncio.timeout(5):
            while is_held(media):
                await asyncio.sleep(0.01)  # the worker thread drops the file, too
    finally:
        gc.enable()
        media.close()


async def test_a_large_picture_is_not_overtaken_for_ever() -> None:
    media = loader(max_media_memory_bytes=1000 * BYTES_PER_PIXEL)
    done: list[int] = []
    urls = [data_url(plain(10, 10, (number, 0, 0))) for number in range(16)]
    urls.insert(4, data_url(plain(100, 100)))
    pictures = await media.load([MediaPart("field", url) for url in urls[:16]])

    def prepare(picture: Picture) -> None:
        time.sleep(0.002)
        done.append(picture.num_pixels)

    await media.decode(pictures, prepare)

    assert done.index(10_000) <= 8
    media.close()


async def test_a_client_that_leaves_stops_waiting_for_memory() -> None:
    media = loader(max_media_memory_bytes=1024)
    [first, second] = await media.load(
        parts(data_url(plain(10, 10, RED)), data_url(plain(10, 10, GREEN)))
    )
    begun, go_on = threading.Event(), threading.Event()
    prepared: list[Picture] = []

    def wait(picture: Picture) -> None:
        begun.set()
        assert go_on.wait(10)

    running = asyncio.create_task(media.decode([first], wait))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    waiting = asyncio.create_task(media.decode([second], prepared.append))
    await asyncio.sleep(0.02)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    go_on.set()
    await running
    await decode_colours(media, [first])  # runs after the cancelled one

    assert prepared == []
    media.close()


async def test_files_count_until_they_are_released() -> None:
    size = len(plain(100, 100, file_format="BMP"))
    media = loader(max_media_bytes_total=2 * size)

    def large(number: int) -> list[MediaPart]:
        return parts(data_url(plain(100, 100, (number, 0, 0), "BMP")))

    first, second = await media.load(large(1)), await media.load(large(2))
    with pytest.raises(
        Overloaded,
        match=rf"too many media: {2 * size} bytes of at most {2 * size} .*and {size} more",
    ):
        await media.load(large(3))
    del second
    gc.collect()

    assert [picture.width for picture in await media.load(large(3)) + first] == [100, 100]
    media.close()


async def test_a_request_that_fails_holds_nothing() -> None:
    size = len(plain(100, 100, file_format="BMP"))
    media = loader(max_media_bytes_total=2 * size)

    for number in range(5):
        with pytest.raises(InvalidRequest):
            await media.load(
                parts(data_url(plain(100, 100, (number, 0, 0), "BMP")), "data:,nothing")
            )
        gc.collect()
    media.close()


@pytest.mark.parametrize("module", ["PIL", "httpcore2", "idna"])
def test_a_server_without_pictures_imports_no_picture_library(module: str) -> None:
    program = (
        "import sys, asyncio\n"
        "from ouzel.config import MediaConfig\n"
        "from ouzel.prompts.media.loader import MediaLoader\n"
        "MediaLoader(MediaConfig(allowed_media_domains=('a.org', 'all', '10.0.0.0/8')))\n"
        f"print({module!r} in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "False\n"


def test_a_host_that_may_not_be_asked_costs_no_import() -> None:
    program = (
        "import sys, asyncio\n"
        "from ouzel.config import MediaConfig\n"
        "from ouzel.errors import InvalidRequest\n"
        "from ouzel.prompts.media.loader import MediaLoader\n"
        "from ouzel.prompts.media.parts import MediaPart\n"
        "try:\n"
        "    asyncio.run(MediaLoader(MediaConfig()).load([MediaPart('field', 'http://a.org/')]))\n"
        "except InvalidRequest as error:\n"
        "    print(error, 'httpcore2' in sys.modules)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert (
        done.stdout
        == "field must be of a host in the server's allowed_media_domains, given 'a.org' False\n"
    )
