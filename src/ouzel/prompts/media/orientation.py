"""Reads from EXIF metadata how the camera was held when it took a picture."""

import struct

UPRIGHT = 1
_FIRST_SIDEWAYS = 5  # the orientations 5 to 8 exchange width and height
_ORIENTATION = 0x0112
_SHORT = 3
_LARGEST = 8
_PREFIX = b"Exif\0\0"
_ENTRY_LEN = 12


def read_orientation(exif: object) -> int:
    """Returns the orientation, 1 to 8; UPRIGHT for missing or broken metadata, as other viewers
    do.
    """
    if not isinstance(exif, bytes):
        return UPRIGHT
    tiff = exif.removeprefix(_PREFIX)
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(tiff[:4])
    try:
        return UPRIGHT if order is None else _from_first_directory(tiff, order)
    except struct.error:  # the metadata end too early
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
