"""Sets the number of threads of numpy's BLAS.

BLAS factorises a matrix with all threads. While Ouzel's own threads encode matrices, BLAS has one
thread for each call: otherwise each call would wait for the BLAS threads of the others (four times
the processor time was measured).
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

# in the wheels of numpy
_LIBRARY = "libscipy_openblas64_*"
_FUNCTION = "scipy_openblas_set_num_threads64_"


def set_blas_threads(num_threads: int) -> None:
    """Sets the threads of BLAS; with another BLAS than OpenBLAS it does nothing, which is
    slower.
    """
    for path in (Path(np.__file__).parent.parent / "numpy.libs").glob(_LIBRARY):
        with suppress(OSError, AttributeError):
            getattr(ctypes.CDLL(str(path)), _FUNCTION)(num_threads)


@contextmanager
def all_blas_threads() -> Iterator[None]:
    """Gives BLAS a thread for each processor within the block, and one thread afterwards."""
    set_blas_threads(len(os.sched_getaffinity(0)))
    try:
        yield
    finally:
        set_blas_threads(1)
