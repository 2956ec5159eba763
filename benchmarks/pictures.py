"""Processor time of a picture: decoded and resized by a job of the limited process, and in this process.

usage: uv run python -m benchmarks.pictures

A JPEG of smooth colours becomes 364x364 pixels, again and again. Printed are milliseconds of processor time for each
picture, of this process and of all its children.
"""

import functools
import io
from collections.abc import Callable

import numpy as np
import psutil
from PIL import Image

from ouzel.prompts.media.picture import PictureLimits
from ouzel.prompts.media.pictures import Pictures
from ouzel.prompts.media.pixels import Resized, decode

SIZES = {(640, 480): 200, (2000, 1500): 40, (6000, 4000): 8}  # how often each is decoded in a round
ROUNDS = 3


def picture_file(size: tuple[int, int]) -> bytes:
    colours = np.random.default_rng(1).integers(0, 256, (24, 32, 3)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(colours).resize(size, Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
    return file.getvalue()


def processor_s() -> float:
    """Returns the processor time of this process and its children, with children that have ended."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(
        each.user + each.system + each.children_user + each.children_system for each in times
    )


def milliseconds(work: Callable[[], object], count: int) -> float:
    before = processor_s()
    for _ in range(count):
        work()
    return (processor_s() - before) * 1000 / count


def _decode_and_prepare(prepare: Resized, data: bytes, file_format: str, orientation: int) -> None:
    prepare(decode(data, file_format, orientation))


def main() -> None:
    pictures, prepare = (
        Pictures(PictureLimits(max_bytes=2**24, max_pixels=10**8)),
        Resized((364, 364), 3),
    )
    for size, count in SIZES.items():
        picture = pictures.read(picture_file(size), "picture")
        data, file_format, orientation = picture.data, picture.format, picture.orientation
        job, here = 0.0, 0.0
        pictures.prepare(picture, prepare)  # warms up
        for _ in range(ROUNDS):
            in_job = functools.partial(pictures.prepare, picture, prepare)
            job += milliseconds(in_job, count) / ROUNDS
            in_this_process = functools.partial(
                _decode_and_prepare, prepare, data, file_format, orientation
            )
            here += milliseconds(in_this_process, count) / ROUNDS
        print(f"{size[0]}x{size[1]}: {job:.2f} ms in a job, {here:.2f} ms here")
    pictures.close()


if __name__ == "__main__":
    main()
