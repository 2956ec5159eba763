"""Reports memory that the system refuses, and gives pages back to the system."""

import mmap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ouzel.errors import ModelLoadError
from ouzel.machine.free_memory import available_bytes

GIVE_BACK_INTERVAL_S = 0.02


def memory_error(option: str, num_bytes: int) -> ModelLoadError:
    """Returns the error for memory that the system refuses; it names the amount and the free
    memory.
    """
    size, free = num_bytes / 2**30, available_bytes() / 2**30
    return ModelLoadError(
        f"{option}: the system refuses {size:.1f} GiB of memory, {free:.1f} GiB are free"
    )


@contextmanager
def give_back_pages(mappings: Sequence[mmap.mmap]) -> Iterator[None]:
    """Removes pages that were read from the mappings from this process's memory.

    A thread does so every 20 ms while the block runs, and once at its end. The first run of a model
    copies its weights from a mapping into the layout of the processor; without this function the
    peak would hold both copies. A page that is needed again is mapped again, from the page cache or
    the file.
    """
    if not mappings or not hasattr(mmap, "MADV_DONTNEED"):
        yield
        return
    done = threading.Event()

    def give_back_once() -> None:
        for mapping in mappings:
            mapping.madvise(mmap.MADV_DONTNEED)

    def give_back() -> None:
        while not done.wait(GIVE_BACK_INTERVAL_S):
            give_back_once()
        give_back_once()

    thread = threading.Thread(target=give_back, name="give-back-pages")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
