"""Full blocks, and states of recurrent layers, are kept in files, so that the next start finds them.

Rules
1. Of a prompt all full blocks are offered when its sequence ends, computed ones and found ones; where the model has
   states, as soon as one is kept, with the blocks before it. Of an answer nothing is, until it comes back in a prompt.
2. A thread of its own copies offered rows out of the runner's caches and writes them; the engine's copies nothing. A
   row is copied under the lock and only while it is `_offered`; the engine withdraws it, under the lock, before the row
   is given to somebody else. So no torn copy is written, and the engine waits for one row at most.
3. Rows are loaded by the engine's thread, MAX_LOADED_BYTES in a step, so that others' tokens are not long in coming; a
   prompt with more than that takes its place in the cache over several steps.
4. What cannot be kept or loaded costs time and nothing else: no request fails by it.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Full, Queue

import numpy as np

from ouzel.engine.base import CacheRows, StorableRunner
from ouzel.engine.cache.record_files import DIGEST_BYTES, RecordDamaged, RecordFiles
from ouzel.errors import ModelLoadError

MAX_LOADED_BYTES = 32 * 2**20  # in a step: 30 ms on two cores
MAX_OFFERS = 256  # prompts that wait to be written; one more is not
FLUSH_TIMEOUT_S = 8.0  # for what is still to be written at the end; the engine has ten seconds
NUM_LOADING_THREADS = 4

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredRow:
    """It says what lies in a row of the caches."""

    name: str  # of its record
    content: bytes  # what a block's key stands for, which is compared; empty for a state
    row: int  # block or slot


def block_name(key: bytes) -> str:
    return f"{key.hex()}.block"


def state_name(key: bytes) -> str:
    return f"{key.hex()}.state"


class PrefixStore:
    """Takes rows of a runner's caches to files, and back."""

    def __init__(
        self,
        files: RecordFiles,
        rows: Mapping[str, CacheRows],
        *,
        max_loaded_bytes: int = MAX_LOADED_BYTES,
    ) -> None:
        """`rows` has the blocks and, where the model has some, the states, by the endings of their records' names."""
        self._files = files
        self._rows = rows
        self._buffers = threading.local()
        self._loaders = ThreadPoolExecutor(
            min(NUM_LOADING_THREADS, os.cpu_count() or 1), "load-prefix"
        )
        self._lock = threading.Lock()
        self._offered: dict[str, int] = {}  # name -> row; until it is copied, or withdrawn
        self._offers: Queue[list[StoredRow] | None] = Queue(MAX_OFFERS)
        self._is_closing = threading.Event()
        self._has_failed = False  # to write; said once
        self._num_loaded_in_step = 0
        self._max_loaded_in_step = max(1, max_loaded_bytes // rows["block"].row_bytes)
        self.num_written = 0  # records, blocks and states alike
        self.num_loaded = 0
        self.num_damaged = 0
        self.num_skipped = 0  # offered, but gone or too late
        self._writer = threading.Thread(
            target=self._write_offers, name="write-prefixes", daemon=True
        )
        self._writer.start()

    @property
    def num_bytes(self) -> int:
        return self._files.num_bytes

    @property
    def num_loadable(self) -> int:
        """Counts the blocks that the step in progress may still load."""
        return max(
            0, self._max_loaded_in_step - self._num_loaded_in_step
        )  # states are loaded beyond it

    def step_done(self) -> None:
        self._num_loaded_in_step = 0

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def load(self, rows: Sequence[StoredRow]) -> int:
        """Fills rows of the caches; returns how many, from the first on, now hold what was stored."""
        self._num_loaded_in_step += len(rows)
        faults = list(self._loaders.map(self._load, rows))
        for each, fault in zip(rows, faults, strict=True):
            if fault is not None:
                self._drop(each.name, fault)
        num_loaded = next(
            (number for number, fault in enumerate(faults) if fault is not None), len(rows)
        )
        self.num_loaded += num_loaded
        return num_loaded

    def _drop(self, name: str, fault: RecordDamaged | OSError) -> None:
        self._files.delete(name)
        if isinstance(fault, FileNotFoundError):  # another server, which writes here, has made room
            logger.debug("the record %s of the prefix cache directory is gone", name)
            return
        self.num_damaged += 1
        log = logger.warning if self.num_damaged == 1 else logger.debug
        log(
            "the record %s of the prefix cache directory is dropped, as others may be: %s",
            name,
            fault,
        )

    def offer(self, rows: list[StoredRow]) -> None:
        """Lets a prompt's rows be written, the first one first."""
        missing = {each.name: each.row for each in rows if each.name not in self._files}
        with self._lock:
            self._offered |= missing
        try:
            self._offers.put_nowait(rows)
        except Full:
            self.num_skipped += len(missing)

    def withdraw(self, name: str) -> None:
        """Returns when nobody reads the row of this record any more: it may be written."""
        if name in self._offered:
            with self._lock:
                self._offered.pop(name, None)

    def close(self) -> None:
        """Writes what is offered, for a few seconds at most."""
        deadline = time.monotonic() + FLUSH_TIMEOUT_S
        with suppress(Full):
            self._offers.put(None, timeout=FLUSH_TIMEOUT_S)
        self._writer.join(deadline - time.monotonic())
        self._is_closing.set()
        self._writer.join()
        if not self._offers.empty():
            logger.warning(
                "%d prompts were not written to the prefix cache directory in time",
                self._offers.qsize(),
            )
        self._loaders.shutdown()
        self._files.close()

    # On the threads that load

    def _load(self, each: StoredRow) -> RecordDamaged | OSError | None:
        try:
            self._rows_of(each).write(
                each.row, self._files.read(each.name, each.content, self._buffer())
            )
        except (RecordDamaged, OSError) as error:
            return error
        return None

    # On the thread that writes

    def _write_offers(self) -> None:
        be_nice()
        rows: list[StoredRow] | None = []  # at first nothing but what is too much goes
        while rows is not None and not self._is_closing.is_set():
            try:
                self._write(rows)
            except OSError as error:
                log = logger.debug if self._has_failed else logger.warning
                log("the prefix cache directory cannot be written: %s", error)
                self._has_failed = True
            rows = self._offers.get()

    def _write(self, rows: list[StoredRow]) -> None:
        """Stops at the first row that is gone: without it the later ones are of no use."""
        if not self._files.claim():
            return
        self._files.trim()
        names = [each.name for each in rows]
        spared = set(names)
        self._files.note_use(reversed(names))  # of one prompt the end goes before the beginning
        for each in rows:
            if self._is_closing.is_set() or not (
                each.name in self._files or self._write_row(each, spared)
            ):
                break
        self._files.note_use(reversed(names))

    def _write_row(self, each: StoredRow, spared: set[str]) -> bool:
        rows = self._rows_of(each)
        record = np.frombuffer(self._buffer(), np.uint8)[: rows.row_bytes]
        with self._lock:
            row = self._offered.get(each.name)  # it may have been withdrawn and lie elsewhere since
            if row is None:
                self.num_skipped += 1
                return False
            rows.read(row, record)
            del self._offered[each.name]
        is_kept = self._files.write(each.name, each.content, record, spared=spared)
        self.num_written += is_kept
        return is_kept

    def _rows_of(self, each: StoredRow) -> CacheRows:
        return self._rows[each.name.rpartition(".")[2]]

    def _buffer(self) -> bytearray:
        """Returns one that belongs to the thread and holds any record."""
        if not hasattr(self._buffers, "own"):
            self._buffers.own = bytearray(
                DIGEST_BYTES + max(rows.row_bytes for rows in self._rows.values())
            )
        buffer: bytearray = self._buffers.own
        return buffer


def be_nice() -> None:
    """Gives the calling thread a tenth of others' share of a core, where threads have priorities of their own.

    Not less: while it has the lock, or the interpreter's, the engine may wait for it.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def open_prefix_store(runner: StorableRunner, directory: str, *, max_bytes: int) -> PrefixStore:
    """Raises ModelLoadError where the directory cannot be used."""
    root = Path(directory).expanduser()
    rows = runner.cache_rows
    sizes = {ending: each.row_bytes for ending, each in rows.items()}
    try:
        files = RecordFiles(root, runner.info.cache_identity, sizes, max_bytes=max_bytes)
    except OSError as error:
        raise ModelLoadError(f"prefix_cache_dir: {root} cannot be used: {error}") from error
    if not files.is_writable:
        logger.warning(
            "another engine with this model writes to %s: until it ends this one adds nothing", root
        )
    logger.info(
        "prefix cache directory %s: %d records, %.2f GiB", root, len(files), files.num_bytes / 2**30
    )
    return PrefixStore(files, rows)
