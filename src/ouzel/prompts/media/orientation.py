"""How a camera was held when it took a picture, as EXIF says it."""

import struct

UPRIGHT = 1
_FIRST_SIDEWAYS = 5  # from here to 8 width and height change places
_ORIENTATION = 0x0112
_SHORT = 3
_LARGEST = 8
_PREFIX = b"Exif\0\0"
_ENTRY_LEN = 12


def read_orientation(exif: object) -> int:
    """Returns 1 to 8; upright where the metadata say nothing, or are broken, as viewers of pictures do."""
    if not isinstance(exif, bytes):
        return UPRIGHT
    tiff = exif.removeprefix(_PREFIX)
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    try:
        return UPRIGHT if order is None else _from_first_directory(tiff, order)
    except struct.error:  # it ends too early
        return UPRIGHT


def _from_first_directory(tiff: bytes, order: str) -> int:
    (start,) = struct.unpack_from(f"{order}I", tiff, 4)
    (num_entries,) = struct.unpack_from(f"{order}H", tiff, start)
    for position in range(start + 2, start + 2 + _ENTRY_LEN * num_entries, _ENTRY_LEN):
        tag, kind, count, value = struct.unpack_from(f"{order}HHIH", tiff, position)
        if tag == _ORIENTATION:
            is_known = kind == _SHORT and count == 1 and UPRIGHT <= value <= _LARGEST
            return value if is_known else UPRIGHT
    return UPRIGHT


def is_sideways(orientation: int) -> bool:
    return orientation >= _FIRST_SIDEWAYS
