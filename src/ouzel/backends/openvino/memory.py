"""A process asks here how much memory it may still take, and gives back what it no longer needs."""

import mmap
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ouzel.errors import ModelLoadError

GIVE_BACK_INTERVAL_S = 0.02


def available_bytes() -> int:
    """Returns what the machine has free or can free, or what the control group (container) leaves, if that is less."""
    return min(_machine_available_bytes(), _control_group_available_bytes())


def memory_error(option: str, num_bytes: int) -> ModelLoadError:
    """Returns the error for memory that the system refuses, with the amount that it has."""
    wanted, free = num_bytes / 2**30, available_bytes() / 2**30
    return ModelLoadError(f"{option}: the memory for {wanted:.1f} GiB cannot be had, {free:.1f} GiB are free")


def _machine_available_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:  # macOS and others: half of what is built in, since what is free cannot be asked for
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return 4 * 2**30


def _control_group_available_bytes() -> int:
    root = Path("/sys/fs/cgroup")
    try:
        limit = int((root / "memory.max").read_text(encoding="ascii"))  # "max" when there is none
        statistics = dict(line.split() for line in (root / "memory.stat").read_text(encoding="ascii").splitlines())
        return max(0, limit - int(statistics["anon"]))
    except (OSError, ValueError, KeyError):
        return 2**63 - 1


@contextmanager
def pages_given_back(mappings: Sequence[mmap.mmap]) -> Iterator[None]:
    """Takes pages of the mappings that were read out of this process's memory, while the block runs and at its end.

    The first run of a model copies its weights from a mapping into the layout of the processor. Without this the
    peak would hold both. A page that is needed again is mapped again, from the page cache or the file.
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
