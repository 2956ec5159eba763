"""Keeps full blocks and states of recurrent layers in files for the next start of the server.

Rules
1. All full blocks of a prompt are offered to the store when its sequence ends, whether computed or
   found. If the model has states, blocks are offered as soon as a state is kept, with that state.
   Blocks of an answer are not offered until they come back in a prompt.
2. A thread copies offered rows out of the runner's caches and writes them; the engine's thread
   copies nothing. A row is copied under the lock, and only while it is in `_offered`; the engine
   withdraws the row, under the lock, before the row is used for other content. So no torn copy is
   written, and the engine waits for one row at most.
3. The engine's thread loads at most MAX_LOADED_BYTES in a step, to bound the delay of other
   requests' tokens. A longer prompt is loaded over several steps.
4. A row that cannot be stored or loaded costs only time: no request fails.
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

MAX_LOADED_BYTES = 32 * 2**20  # limit of one step: 30 ms on two cores
EMPTY_BLOCK_BYTES = 2**16  # a block without attention counts as much: its file must be opened
MAX_OFFERS = 256  # prompts that wait to be written; further prompts are skipped
FLUSH_TIMEOUT_S = 8.0  # time to write the rest at the end; the engine has ten seconds
NUM_LOADING_THREADS = 4

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row of the caches and its record."""

    name: str  # name of the record
    content: bytes  # content of a block's key, which is compared; empty for a state
    row: int  # number of the block or slot


def block_name(key: bytes) -> str:
    return f"{key.hex()}.block"


def state_name(key: bytes) -> str:
    return f"{key.hex()}.state"


class PrefixStore:
    """Copies rows of a runner's caches to files, and back."""

    def __init__(
        self,
        files: RecordFiles,
        rows: Mapping[str, CacheRows],
        *,
        max_loaded_bytes: int = MAX_LOADED_BYTES,
    ) -> None:
        """`rows` has the caches by the endings of record names: `block`, and `state` if the model
        has states.
        """
        self._files = files
        self._rows = rows
        self._buffers = threading.local()
        self._loaders = ThreadPoolExecutor(
            min(NUM_LOADING_THREADS, os.cpu_count() or 1), "load-prefix"
        )
        self._lock = threading.Lock()
        self._offered: dict[str, int] = {}  # name -> row; until the row is copied or withdrawn
        self._offers: Queue[list[StoredRow] | None] = Queue(MAX_OFFERS)
        self._is_closing = threading.Event()
        self._has_failed = False  # a write has failed and was logged
        self._num_loaded_in_step = 0
        block_bytes = rows["block"].row_bytes or EMPTY_BLOCK_BYTES
        self._max_loaded_in_step = max(1, max_loaded_bytes // block_bytes)
        self.num_written = 0  # records, of blocks and states
        self.num_loaded = 0
        self.num_damaged = 0
        self.num_skipped = 0  # rows that were offered and then withdrawn, or offered too late
        self._writer = threading.Thread(
            target=self._write_offers, name="write-prefixes", daemon=True
        )
        self._writer.start()

    @property
    def num_bytes(self) -> int:
        return self._files.num_bytes

    @property
    def num_loadable(self) -> int:
        """Counts the blocks that this step may still load."""
        # States are loaded in addition.
        return max(0, self._max_loaded_in_step - self._num_loaded_in_step)

    def step_done(self) -> None:
        self._num_loaded_in_step = 0

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def load(self, rows: Sequence[StoredRow]) -> int:
        """Fills rows of the caches from their records.

        Returns the number of rows before the first fault.
        """
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
        if isinstance(fault, FileNotFoundError):  # another server that writes here has deleted it
            logger.debug("the record %s of the prefix cache directory is gone", name)
            return
        self.num_damaged += 1
        log = logger.warning if self.num_damaged == 1 else logger.debug
        log(
            "prefix cache directory: record %s is damaged and was deleted, "
            "further ones are logged at DEBUG: %s",
            name,
            fault,
        )

    def offer(self, rows: list[StoredRow]) -> None:
        """Queues the rows of a prompt for the writing thread, the first row first."""
        missing = {each.name: each.row for each in rows if each.name not in self._files}
        with self._lock:
            self._offered |= missing
        try:
            self._offers.put_nowait(rows)
        except Full:
            self.num_skipped += len(missing)

    def withdraw(self, name: str) -> None:
        """Waits until the writing thread has released the row of this record.

        It may then be overwritten.
        """
        if name in self._offered:
            with self._lock:
                self._offered.pop(name, None)

    def close(self) -> None:
        """Writes the offered rows, for FLUSH_TIMEOUT_S at most."""
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
            self._get_cache(each).write(
                each.row, self._files.read(each.name, each.content, self._buffer())
            )
        except (RecordDamaged, OSError) as error:
            return error
        return None

    # On the thread that writes

    def _write_offers(self) -> None:
        lower_priority()
        rows: list[StoredRow] | None = []  # the first round only deletes records beyond `max_bytes`
        while rows is not None and not self._is_closing.is_set():
            try:
                self._write(rows)
            except OSError as error:
                log = logger.debug if self._has_failed else logger.warning
                log("the prefix cache directory cannot be written: %s", error)
                self._has_failed = True
            rows = self._offers.get()

    def _write(self, rows: list[StoredRow]) -> None:
        """Writes the rows up to the first withdrawn row: later rows are useless without it."""
        if not self._files.claim():
            return
        self._files.trim()
        names = [each.name for each in rows]
        spared = set(names)
        self._files.note_use(reversed(names))  # the end of a prompt is dropped before its beginning
        for each in rows:
            if self._is_closing.is_set() or not (
                each.name in self._files or self._write_row(each, spared)
            ):
                break
        self._files.note_use(reversed(names))

    def _write_row(self, each: StoredRow, spared: set[str]) -> bool:
        rows = self._get_cache(each)
        record = np.frombuffer(self._buffer(), np.uint8)[: rows.row_bytes]
        with self._lock:
            # the row may have been withdrawn, and offered again from another row
            row = self._offered.get(each.name)
            if row is None:
                self.num_skipped += 1
                return False
            rows.read(row, record)
            del self._offered[each.name]
        is_written = self._files.write(each.name, each.content, record, spared=spared)
        self.num_written += is_written
        return is_written

    def _get_cache(self, each: StoredRow) -> CacheRows:
        return self._rows[each.name.rpartition(".")[2]]

    def _buffer(self) -> bytearray:
        """Returns the thread's own buffer, large enough for any record."""
        if not hasattr(self._buffers, "own"):
            self._buffers.own = bytearray(
                DIGEST_BYTES + max(rows.row_bytes for rows in self._rows.values())
            )
        buffer: bytearray = self._buffers.own
        return buffer


def lower_priority() -> None:
    """Lowers the calling thread's share of a core to a tenth, where threads have own priorities.

    Not lower: the engine may wait for this thread while it holds the lock or the GIL.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def open_prefix_store(runner: StorableRunner, directory: str, *, max_bytes: int) -> PrefixStore:
    """Opens the prefix store of a runner. Raises ModelLoadError if the directory is not usable."""
    root = Path(directory).expanduser()
    rows = runner.cache_rows
    sizes = {ending: each.row_bytes for ending, each in rows.items()}
    try:
        files = RecordFiles(root, runner.info.cache_identity, sizes, max_bytes=max_bytes)
    except OSError as error:
        raise ModelLoadError(f"prefix_cache_dir: {root} cannot be used: {error}") from error
    if not files.is_writable:
        logger.warning(
            "prefix cache directory %s: another engine with this model writes here; "
            "this engine only reads until it ends",
            root,
        )
    logger.info(
        "prefix cache directory %s: %d records, %.2f GiB", root, len(files), files.num_bytes / 2**30
    )
    return PrefixStore(files, rows)
