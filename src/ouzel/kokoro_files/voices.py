"""Reads the voices of a Kokoro model.

A voice is a table with a row of 256 numbers for each number of phonemes: a text of n phonemes takes
row n - 1 (hexgrad/kokoro, `KPipeline.infer`).
"""

import re
import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import ModelLoadError
from ouzel.kokoro_files.vocabulary import MAX_PHONEMES

STYLE_SIZE = 256  # numbers in a row
_NAME = re.compile(r"\w[\w.-]{0,63}")
_MAX_ROWS = 2**12
_MAX_VOICES = 1024
_ROW_BYTES = STYLE_SIZE * 4

# errors of NumPy and zipfile for broken files; the last: an entry with a password
_FAULTS = (OSError, ValueError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error, RuntimeError)

Voices = dict[str, NDArray[np.float32]]


def read_voices(directory: Path) -> Voices:
    """Returns the tables [rows, 256] of a made directory by the names of their voices, sorted.

    Raises ModelLoadError.
    """
    archive = directory / "voices.npz"
    tables = _read_archive(archive) if archive.is_file() else _read_files(directory / "voices")
    if not 0 < len(tables) <= _MAX_VOICES:
        raise ModelLoadError(
            f"{directory} must have 1 to {_MAX_VOICES} voices, found {len(tables)}"
        )
    for name, table in tables.items():
        if not _NAME.fullmatch(name):
            raise ModelLoadError(
                f"{directory}: a voice must be named by letters, digits, . _ and -, found {name!r}"
            )
        if not np.isfinite(table).all():
            raise ModelLoadError(f"{directory}: the voice {name} has numbers that are not finite")
    return dict(sorted(tables.items()))


def _read_files(directory: Path) -> Voices:
    tables: Voices = {}
    for path in sorted(path for path in directory.iterdir() if path.is_file()):
        if path.suffix == ".npy":
            tables[path.stem] = _shape_table(_load_array(path), path)
        elif path.suffix == ".bin":
            _check_size(path)
            tables[path.stem] = _shape_table(np.fromfile(path, "<f4"), path)
    return tables


def _check_size(path: Path) -> None:
    num_bytes = path.stat().st_size
    if num_bytes % _ROW_BYTES or num_bytes > _MAX_ROWS * _ROW_BYTES:
        raise ModelLoadError(_describe_fault(path, f"{num_bytes} bytes"))


def _load_array(path: Path) -> NDArray[np.generic]:
    try:
        array: NDArray[np.generic] = np.load(path, allow_pickle=False)
    except _FAULTS as error:
        raise ModelLoadError(f"{path} is no array of NumPy: {error}") from error
    return array


def _read_archive(path: Path) -> Voices:
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = archive.files[: _MAX_VOICES + 1]
            return {name: _shape_table(archive[name], path) for name in names}
    except _FAULTS as error:
        raise ModelLoadError(f"{path} is no archive of NumPy arrays: {error}") from error


def _shape_table(array: object, path: Path) -> NDArray[np.float32]:
    """Returns the array as [rows, 256]; files have [510, 1, 256], and older ones 511 rows."""
    if not isinstance(array, np.ndarray):
        raise ModelLoadError(_describe_fault(path, "an entry that is no array"))
    num_rows, rest = divmod(array.size, STYLE_SIZE)
    if rest or not MAX_PHONEMES <= num_rows <= _MAX_ROWS or array.dtype.kind != "f":
        raise ModelLoadError(_describe_fault(path, f"{array.size} numbers of {array.dtype}"))
    return np.ascontiguousarray(array.reshape(num_rows, STYLE_SIZE), np.float32)


def _describe_fault(path: Path, found: str) -> str:
    return (
        f"{path} must have {MAX_PHONEMES} to {_MAX_ROWS} rows of {STYLE_SIZE} numbers of float32, "
        f"found {found}: it is no voice of a Kokoro model"
    )
