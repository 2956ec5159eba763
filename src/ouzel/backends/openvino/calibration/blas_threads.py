"""Matrices are factorised by all threads of numpy's BLAS, and encoded by threads of ours with one
of BLAS each.

Otherwise each call of our threads would wait for the threads of the others: four times the
processor time was seen.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

_LIBRARY, _FUNCTION = (
    "libscipy_openblas64_*",
    "scipy_openblas_set_num_threads64_",
)  # in the wheels of numpy


def set_blas_threads(num_threads: int) -> None:
    """Does nothing where numpy has another BLAS: that is slower, and nothing else."""
    for path in (Path(np.__file__).parent.parent / "numpy.libs").glob(_LIBRARY):
        with suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(str(path)), _FUNCTION)(num_threads)


@contextmanager
def all_blas_threads() -> Iterator[None]:
    """Within the block BLAS has a thread for each processor, afterwards one."""
    set_blas_threads(len(os.sched_getaffinity(0)))
    try:
        yield
    finally:
        set_blas_threads(1)
