"""Reads pictures with Pillow, in a limited process: headers, pixels, or frames of an animated
picture.

A task contains a pickled callable of the server that prepares the pixels. Results are plain bytes:
even if a file takes over the decoding process, the server reads only numbers and bytes from it.
"""

import ctypes
import pickle
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, assert_never

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.animation_frames import decode_animation
from ouzel.prompts.media.picture import Header, decode_header
from ouzel.prompts.media.pillow import import_pillow
from ouzel.prompts.media.pixels import decode

if TYPE_CHECKING:
    from PIL.Image import Image

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # constants of malloc.h
_KEPT_BYTES = 64 * 2**20
_LARGEST_KEPT_BYTES = 32 * 2**20  # the library's maximum

# Makes uint8 arrays from a picture in RGB. It can be pickled.
Preparation = Callable[["Image"], Sequence[NDArray[np.uint8]]]


class ReadHeader(msgspec.Struct, frozen=True, tag="header"):
    data: bytes
    max_pixels: int


class DecodePicture(msgspec.Struct, frozen=True, tag="picture"):
    data: bytes
    format: str  # one of FORMATS
    orientation: int  # 1 to 8, as in EXIF
    preparation: bytes  # a pickled Preparation


class DecodeFrames(msgspec.Struct, frozen=True, tag="frames"):
    data: bytes
    orientation: int
    numbers: list[int]  # frame numbers, ascending
    preparation: bytes  # a pickled Preparation that makes one array


class FoundHeader(msgspec.Struct, frozen=True, tag="header"):
    header: Header


class Pixels(msgspec.Struct, frozen=True):
    shape: tuple[int, ...]
    values: bytes  # uint8


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    arrays: list[Pixels]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    complaint: str  # continues the sentence that begins with the content part's field


Task = ReadHeader | DecodePicture | DecodeFrames
Outcome = FoundHeader | Prepared | Refused


def create_picture_job(imports: Sequence[str]) -> Callable[[bytes], bytes]:
    """Returns a function that runs an encoded Task and returns its encoded Outcome.

    `imports` are modules that preparations need; they are imported before the first job.
    """
    _keep_memory()
    import_pillow()
    for module in imports:
        import_module(module)

    def run(encoded: bytes) -> bytes:
        return msgspec.msgpack.encode(_outcome(msgspec.msgpack.decode(encoded, type=Task)))

    return run


def _keep_memory() -> None:
    """Keeps freed memory for the next job. Getting it from the system again takes a quarter of the
    decoding time.
    """
    with suppress(OSError, AttributeError, TypeError):  # not the GNU C library, or Windows
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def _outcome(task: Task) -> Outcome:
    try:
        match task:
            case ReadHeader():
                return FoundHeader(decode_header(task.data, task.max_pixels))
            case DecodePicture():
                prepare: Preparation = pickle.loads(task.preparation)
                return _prepared(prepare(decode(task.data, task.format, task.orientation)))
            case DecodeFrames():
                prepare = pickle.loads(task.preparation)
                return _prepared(
                    decode_animation(task.data, task.orientation, task.numbers, prepare)
                )
            case _:
                assert_never(task)
    except InvalidRequest as error:
        return Refused(str(error))


def _prepared(arrays: Sequence[NDArray[np.uint8]]) -> Prepared:
    return Prepared([Pixels(array.shape, array.tobytes()) for array in arrays])
