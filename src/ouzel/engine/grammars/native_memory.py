"""The C library tells how much memory native code holds, and gives back what it does not. GNU's only."""

import ctypes
from contextlib import suppress


class _Mallinfo(ctypes.Structure):
    """It is glibc's `struct mallinfo2`."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("_0", "_1", "_2", "_3", "mapped", "_5", "_6", "used", "_8", "_9")
    )


def allocated_bytes() -> int:
    """Returns what native code holds, 0 where the C library does not say: what it gave back it may take again."""
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is None:
        return 0
    function.restype = _Mallinfo
    info = function()
    return int(info.used + info.mapped)


def give_back_memory() -> None:
    """Gives the system what was freed: a few milliseconds."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
