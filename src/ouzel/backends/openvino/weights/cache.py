"""Stores compressed weights on disk: made from a checkpoint once, and mapped into memory
afterwards.

An entry is a directory `<directory's name>-<weights>-<source key>-<content key>/` with these files:

- weights.bin: the parts of all matrices and vectors, one after the other, each aligned to ALIGNMENT
  bytes
- index.json: name -> encoding, shape, and dtype, shape, offset of each part; checksums
  (entry_check.py)
- made_of.json: the checkpoint of the entry (entry_use.py)

The source key is the path of the checkpoint; the content key covers path, size and time of change
of its files, the versions of openvino and ouzel, and FORMAT. An entry is written under a temporary
name and renamed, so it is complete or absent. Compressed weights never take anonymous memory of
this process: while an entry is made, its parts are views of the file, and afterwards parts of a
mapping, whose pages can be given back (memory.py).
"""

import glob
import hashlib
import json
import logging
import math
import mmap
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

import ouzel
from ouzel.backends.openvino.library import ov
from ouzel.backends.openvino.weights.cells import num_blocks
from ouzel.backends.openvino.weights.encodings import Encoding
from ouzel.backends.openvino.weights.entry_check import WEIGHTS_FILE, open_entry, seal_entry
from ouzel.backends.openvino.weights.entry_use import hold
from ouzel.backends.openvino.weights.source import Array, Matrix, MatrixSpec
from ouzel.config.cache_root import cache_root
from ouzel.config.weights import WidthOption

logger = logging.getLogger(__name__)

FORMAT = 12  # increase it if the encodings or the layout of an entry change
ALIGNMENT = 64
PACKED = ",packed"  # end of the part of an entry's name that stands for the weights
CALIBRATED = ",calibrated"  # stands behind PACKED
UNFINISHED = ".unfinished-"
ABANDONED_AFTER_S = 24 * 3600.0


class CachedWeights:
    """Reads the weights of a finished entry; implements `Weights`.

    Raises OSError, ValueError, KeyError or TypeError if the entry is broken.
    """

    def __init__(self, entry: Path) -> None:
        self.index: Mapping[str, Any] = open_entry(entry)["weights"]
        with (entry / WEIGHTS_FILE).open("rb") as file:
            hold(file)
            # Copy-on-write, because openvino shares only writable arrays; nothing writes to the
            # mapping.
            self.mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def matrix(self, spec: MatrixSpec, width: WidthOption) -> Matrix:
        """Returns the matrix. `width` has no effect: the entry's name stands for its widths."""
        entry = self.index[spec.key]
        if tuple(entry["shape"]) != spec.shape:
            raise ValueError(f"{spec.key} has another shape than {list(spec.shape)}")
        parts = {name: self._part(part) for name, part in entry["parts"].items()}
        encoding = Encoding(**entry["encoding"])
        rows = math.prod(spec.shape[:-1])
        num_rows = num_blocks(rows) if encoding.is_packed else rows
        if any(len(part) != num_rows for part in parts.values()):
            raise ValueError(f"{spec.key} does not have {num_rows} rows")
        return Matrix(encoding, spec.shape, parts)

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        vector = self._part(self.index[name]["parts"]["values"])
        if vector.size != math.prod(shape):
            raise ValueError(f"{name} does not have {math.prod(shape)} elements")
        return vector.astype(np.float32, copy=False).reshape(shape)

    def has(self, name: str) -> bool:
        return name in self.index

    def _part(self, part: dict[str, Any]) -> Array:
        count = math.prod(part["shape"])
        return np.frombuffer(self.mapping, np.dtype(part["dtype"]), count, part["offset"]).reshape(
            part["shape"]
        )


class EntryWriter:
    """Writes an entry in a temporary directory and renames it on `commit`.

    Leaving the `with` block without a commit removes the directory.
    """

    def __init__(self, entry: Path) -> None:
        """Makes the temporary directory. Raises OSError if the cache cannot be written."""
        entry.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(entry.parent)
        self._entry = entry
        self.directory = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=entry.parent))
        self._path = self.directory / WEIGHTS_FILE
        self._file: IO[bytes] = self._path.open("wb")

    def append(self, chunks: Iterable[Array]) -> tuple[Array, dict[str, Any]]:
        """Writes the chunks as one part; returns the part as a mapping of the file, and its index
        entry.
        """
        self._file.write(b"\0" * (-self._file.tell() % ALIGNMENT))
        offset, num_rows = self._file.tell(), 0
        for chunk in chunks:
            self._file.write(np.ascontiguousarray(chunk).data)
            num_rows += len(chunk)
        self._file.flush()
        shape = (num_rows, *chunk.shape[1:])
        part = np.memmap(self._path, chunk.dtype, "c", offset, shape)
        return part, {"dtype": chunk.dtype.name, "shape": shape, "offset": offset}

    def commit(self, index: dict[str, Any]) -> None:
        """Writes the index and renames the directory; older entries of the checkpoint are
        removed.
        """
        self._file.flush()
        # so that the renamed entry has its data after a power cut, too
        os.fsync(self._file.fileno())
        self._file.close()
        seal_entry(self.directory, self._entry.name, index)
        self.directory.chmod(0o755)
        try:
            self.directory.rename(self._entry)
        except OSError:
            if not self._entry.is_dir():  # another process was faster; its entry is as good
                raise
        remove_superseded(self._entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()
        # does nothing after a commit, which has renamed the directory
        shutil.rmtree(self.directory, ignore_errors=True)


def remove_superseded(entry: Path) -> None:
    """Removes entries for an older state of the checkpoint or older versions of openvino or
    ouzel.
    """
    same_source = glob.escape(entry.name.rpartition("-")[0])
    for other in entry.parent.glob(same_source + "-*"):
        if other != entry:
            shutil.rmtree(other, ignore_errors=True)


def remove_abandoned(root: Path) -> None:
    """Removes the temporary directories of processes that were killed."""
    for directory in root.glob(UNFINISHED + "*"):
        with suppress(OSError):  # another process may be removing it, too
            if time.time() - directory.stat().st_mtime > ABANDONED_AFTER_S:
                shutil.rmtree(directory)


def entry_path(cache_dir: str, directory: Path, files: list[Path], weights: str) -> Path:
    """Returns the path of a checkpoint's entry; `weights` is the part of the name for the
    weights.
    """
    source = directory.resolve()
    return (
        cache_root(cache_dir)
        / f"{source.name[:64]}-{weights}-{digest(str(source))}-{content_key(files)}"
    )


def content_key(files: list[Path]) -> str:
    """Returns 16 digits that change with the files and with the versions of openvino and ouzel."""
    facts = [FORMAT, ouzel.__version__, ov.__version__]
    facts += [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return digest(json.dumps(facts))


def calibrated_path(entry: Path) -> Path:
    """Returns the path of the entry with the same weights, encoded with a calibration."""
    name, source, content = entry.name.rsplit("-", 2)
    return entry.with_name(f"{name}{CALIBRATED}-{source}-{content}")


def preferred_path(entry: Path) -> Path:
    """Returns the calibrated entry of the same weights if there is one, else `entry`.

    Logs a warning about a calibrated entry of an earlier checkpoint or version, which is not used.
    """
    calibrated = calibrated_path(entry)
    if calibrated.exists():
        return calibrated
    outdated = glob.escape(calibrated.name.rpartition("-")[0]) + "-*"
    if next(entry.parent.glob(outdated), None) is not None:
        logger.warning(
            "the calibrated weights in %s belong to an earlier version of Ouzel or of the "
            "checkpoint and are not used: make them again with "
            "`ouzel pull --weights ... --calibrate`",
            entry.parent,
        )
    elif (other := calibrated_path(_other_layout(entry))).exists():
        logger.warning(
            "the calibrated weights %s are not used: they were made %s ouzel-kernels, and this "
            "start multiplies matrices of integers %s them (--precision, --device)",
            other,
            *(("without", "with") if PACKED in entry.name else ("for", "without")),
        )
    return entry


def _other_layout(entry: Path) -> Path:
    """Returns the path of the entry with the same weights, packed or not."""
    name, source, content = entry.name.rsplit("-", 2)
    other = name.removesuffix(PACKED) if name.endswith(PACKED) else name + PACKED
    return entry.with_name(f"{other}-{source}-{content}")


def is_calibrated(entry: Path) -> bool:
    return entry.name.rsplit("-", 2)[0].endswith(CALIBRATED)


def calibrated_index(entry: Path) -> Mapping[str, Any] | None:
    """Returns the index of calibrated weights, None for other weights and for a broken entry."""
    if not is_calibrated(entry):
        return None
    try:
        index: Mapping[str, Any] = open_entry(entry)["weights"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return index


def sizes_in_entry(index: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Returns each encoding of an entry with its bytes, the largest first."""
    sizes: Counter[str] = Counter()
    for entry in index.values():
        encoding = Encoding(**entry["encoding"]) if "encoding" in entry else Encoding("f32")
        for part in entry["parts"].values():
            sizes[encoding.description] += (
                math.prod(part["shape"]) * np.dtype(part["dtype"]).itemsize
            )
    return tuple(sizes.most_common())


def discard_entry(entry: Path, reason: str) -> None:
    """Deletes an entry that cannot be used, and logs the reason.

    The next load makes the weights again, but without a calibration.
    """
    if is_calibrated(entry):
        logger.warning(
            "deleted the calibrated weights %s; weights without a calibration replace them until "
            "`ouzel pull --weights ... --calibrate` makes them again: %s",
            entry,
            reason,
        )
    else:
        logger.warning("cache entry %s is deleted and will be made again: %s", entry, reason)
    shutil.rmtree(entry, ignore_errors=True)


def digest(text: str) -> str:
    """Returns 16 hexadecimal digits of the text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
