"""Tells whether a model of the catalogue fits the memory and the disk of this machine."""

import errno
import os
import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ouzel.errors import ModelLoadError
from ouzel.machine.free_memory import available_bytes
from ouzel.machine.machine import read_memory
from ouzel.machine.quantities import format_size
from ouzel.model_store.catalogue.entry import Entry
from ouzel.model_store.catalogue.sizes import (
    CONTEXT_TOKENS,
    WIDTHS,
    Width,
    choose_width,
    compute_download_bytes,
    compute_memory_bytes,
    compute_weight_bytes,
)

SPARE_BYTES = 64 * 2**20  # free space that a download leaves on the disk


class Fit(StrEnum):
    YES = "yes"
    IF_FREED = "if memory is freed"
    NO = "no"


@dataclass(frozen=True, slots=True)
class MemoryRoom:
    limit_bytes: int  # memory of the machine or its container
    available_bytes: int


def measure_memory() -> MemoryRoom:
    memory = read_memory()
    limit = memory.limit or memory.total
    available = available_bytes()
    return MemoryRoom(limit or available, available)  # only Linux tells the total


def judge_fit(needed_bytes: int, room: MemoryRoom) -> Fit:
    if needed_bytes <= room.available_bytes:
        return Fit.YES
    return Fit.IF_FREED if needed_bytes <= room.limit_bytes else Fit.NO


def check_memory(entry: Entry, weights: str, room: MemoryRoom) -> None:
    """Raises ModelLoadError with the figures if the model can never fit the memory."""
    width = choose_width(weights)
    needed = compute_memory_bytes(entry, width)
    if judge_fit(needed, room) is not Fit.NO:
        return
    smaller = _find_fitting_width(entry, width, room)
    advice = f"--weights {smaller} fits" if smaller else "choose a smaller model: ouzel models"
    raise ModelLoadError(
        f"{entry.name} needs {format_size(needed)} of memory with --weights {weights} and a "
        f"context of {min(CONTEXT_TOKENS, entry.context)} tokens, and this machine has "
        f"{format_size(room.limit_bytes)}; {advice}; --no-check-fit skips this check"
    )


def _find_fitting_width(entry: Entry, width: Width, room: MemoryRoom) -> Width | None:
    for smaller in WIDTHS[WIDTHS.index(width) + 1 :]:
        if judge_fit(compute_memory_bytes(entry, smaller), room) is not Fit.NO:
            return smaller
    return None


def check_disk(
    entry: Entry, weights: str, *, download: Path, stored: Path, num_here: int = 0
) -> None:
    """Raises ModelLoadError if a disk has no room for the download or the compressed weights.

    `download` and `stored` are the directories of both; a directory may not exist yet. `num_here`
    bytes of the download are on the disk already.
    """
    needed = max(compute_download_bytes(entry) - num_here, 0)
    made = compute_weight_bytes(entry.shape, choose_width(weights))
    if _find_device(download) == _find_device(stored):
        _check_space(entry, needed + made, download)
    else:
        _check_space(entry, needed, download)
        _check_space(entry, made, stored)


def _check_space(entry: Entry, needed_bytes: int, directory: Path) -> None:
    free = shutil.disk_usage(_find_existing(directory)).free
    if free < needed_bytes + SPARE_BYTES:
        raise ModelLoadError(
            f"{entry.name} needs {format_size(needed_bytes)} on the disk for its files and its "
            f"compressed weights, and {directory} has {format_size(free)} free"
        ) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _find_device(directory: Path) -> int:
    return os.stat(_find_existing(directory)).st_dev


def _find_existing(directory: Path) -> Path:
    """Returns the directory, or its closest parent that exists."""
    path = directory.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
