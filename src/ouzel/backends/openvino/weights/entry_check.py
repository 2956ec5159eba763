"""A cache entry's files are held against checksums, once for each time that they change.

    index.json    a line with the checksum of what follows it; then the document that cache.py describes, with the
                  entry's name and the checksums of the blocks of weights.bin
    checked.json  what the system said of weights.bin (size, times, inode) when its blocks were last found right
    self_check.json  with what the model of it has passed its self-check (passed_check.py)
    row_check.json   the same of the check of rows, which --deterministic asks for

Reading gigabytes takes longer than the start has: so while the system says the same of the file, it
is not read again. Checksums are for accidents, such as a failing disk, a copy that was cut off, or
a full file system: who can write to the cache can write any weights. CRC-32 reads one to three GB/s
on one core, and every core helps.
"""

import json
import os
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from ouzel.observability.progress import stage

WEIGHTS_FILE = "weights.bin"
INDEX_FILE = "index.json"
CHECKED_FILE = "checked.json"
BLOCK_BYTES = 16 * 2**20  # with a checksum of its own; small enough that all cores have work
READ_BYTES = 2**20  # at a time, so that a check takes no memory to speak of

Document = dict[str, Any]  # JSON: "name", "bytes", "blocks" and "weights"


def seal_entry(entry: Path, name: str, weights: Document) -> None:
    """Writes the index and the checksums of an entry, of which the weights are written, and of
    which `name` will be the directory's name.
    """
    path = entry / WEIGHTS_FILE
    size = path.stat().st_size
    text = json.dumps(
        {"name": name, "bytes": size, "blocks": block_checksums(path, size), "weights": weights}
    )
    (entry / INDEX_FILE).write_text(f"{zlib.crc32(text.encode()):08x}\n{text}", encoding="utf-8")
    remember(entry)


def open_entry(entry: Path) -> Document:
    """Returns the index of an entry that is as it was written. Raises OSError, ValueError, KeyError
    or TypeError.
    """
    checksum, _, text = (entry / INDEX_FILE).read_text(encoding="utf-8").partition("\n")
    if checksum != f"{zlib.crc32(text.encode()):08x}":
        raise ValueError(f"{INDEX_FILE} is not as it was written")
    document: Document = json.loads(text)
    if document["name"] != entry.name:
        raise ValueError(f"it is {document['name']} under another name")
    path = entry / WEIGHTS_FILE
    if (size := path.stat().st_size) != document["bytes"]:
        raise ValueError(f"{WEIGHTS_FILE} has {size} bytes instead of {document['bytes']}")
    if not is_remembered(entry):
        pairs = zip(block_checksums(path, size), document["blocks"], strict=True)
        if damaged := sum(actual != written for actual, written in pairs):
            raise ValueError(
                f"{damaged} of {len(document['blocks'])} blocks of {WEIGHTS_FILE} are not as "
                "written"
            )
        remember(entry)
    return document


def block_checksums(path: Path, size: int) -> list[int]:
    file = os.open(path, os.O_RDONLY)
    try:
        checksums = []
        with (
            ThreadPoolExecutor(os.cpu_count() or 1) as threads,
            stage("checking the weights", size) as checking,
        ):
            for checksum in threads.map(
                lambda start: block_checksum(file, start), range(0, size, BLOCK_BYTES)
            ):
                checksums.append(checksum)
                checking.advance(BLOCK_BYTES)
        return checksums
    finally:
        os.close(file)


def block_checksum(file: int, start: int) -> int:
    checksum = 0
    for offset in range(start, start + BLOCK_BYTES, READ_BYTES):
        checksum = zlib.crc32(os.pread(file, READ_BYTES, offset), checksum)
    return checksum


def is_remembered(entry: Path) -> bool:
    try:
        return bool(
            json.loads((entry / CHECKED_FILE).read_text(encoding="utf-8"))
            == identity(entry / WEIGHTS_FILE)
        )
    except (OSError, ValueError):
        return False


def remember(entry: Path) -> None:
    with suppress(OSError):  # a cache that may only be read is checked at every start
        write_whole(entry / CHECKED_FILE, identity(entry / WEIGHTS_FILE))


def write_whole(path: Path, content: object) -> None:
    """Writes JSON, so that the file is there with all of it or not at all. Raises OSError."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as file:
        json.dump(content, file)
    Path(file.name).replace(path)


def identity(path: Path) -> list[int]:
    """Returns what the system says of a file, which changes with its content."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
