"""Reads and trims the memory of native code through the C library (glibc only)."""

import ctypes
from contextlib import suppress


class _Mallinfo(ctypes.Structure):
    """The layout of glibc's `struct mallinfo2`."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("_0", "_1", "_2", "_3", "mapped", "_5", "_6", "used", "_8", "_9")
    )


def allocated_bytes() -> int:
    """Returns the bytes that native code holds, without freed ones.

    0 if the C library does not tell.
    """
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is None:
        return 0
    function.restype = _Mallinfo
    info = function()
    return int(info.used + info.mapped)


def give_back_memory() -> None:
    """Returns freed memory to the system; takes a few milliseconds."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
