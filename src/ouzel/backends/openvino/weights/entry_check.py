"""Checks the files of a cache entry against checksums, once after each change of the files.

- index.json: a line with the checksum of the rest; then the document that cache.py describes, with
  the entry's name and the checksums of the blocks of weights.bin
- checked.json: the identity of weights.bin (size, times, inode) at the last successful check
- self_check.json: the facts of the last passed self-check (passed_check.py)
- row_check.json: the facts of the last passed check of rows, for --deterministic

Reading gigabytes takes longer than a start may take. So the file is not read again while its
identity stays the same. Checksums detect accidents, such as a failing disk, an incomplete copy, or
a full file system: a person who can write to the cache can write any weights. CRC-32 reads one to
three GB/s on one core, and every core helps.
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
# bytes with a checksum of their own; small enough that all cores have work
BLOCK_BYTES = 16 * 2**20
READ_BYTES = 2**20  # bytes read at once; small, so that a check takes little memory

Document = dict[str, Any]  # JSON: "name", "bytes", "blocks" and "weights"


def seal_entry(entry: Path, name: str, weights: Document) -> None:
    """Writes the index and the checksums of an entry whose weights are written.

    `name` is the later name of the entry's directory.
    """
    path = entry / WEIGHTS_FILE
    size = path.stat().st_size
    text = json.dumps(
        {"name": name, "bytes": size, "blocks": block_checksums(path, size), "weights": weights}
    )
    (entry / INDEX_FILE).write_text(f"{zlib.crc32(text.encode()):08x}\n{text}", encoding="utf-8")
    remember(entry)


def open_entry(entry: Path) -> Document:
    """Returns the index of an intact entry.

    Raises OSError, ValueError, KeyError or TypeError if the entry is damaged.
    """
    checksum, _, text = (entry / INDEX_FILE).read_text(encoding="utf-8").partition("\n")
    if checksum != f"{zlib.crc32(text.encode()):08x}":
        raise ValueError(f"{INDEX_FILE} does not match its checksum")
    document: Document = json.loads(text)
    if document["name"] != entry.name:
        raise ValueError(f"the directory has been renamed from {document['name']}")
    path = entry / WEIGHTS_FILE
    if (size := path.stat().st_size) != document["bytes"]:
        raise ValueError(f"{WEIGHTS_FILE} has {size} bytes instead of {document['bytes']}")
    if not is_checked(entry):
        pairs = zip(block_checksums(path, size), document["blocks"], strict=True)
        if damaged := sum(actual != written for actual, written in pairs):
            raise ValueError(
                f"{damaged} of {len(document['blocks'])} blocks of {WEIGHTS_FILE} do not match "
                "their checksums"
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


def is_checked(entry: Path) -> bool:
    try:
        return bool(
            json.loads((entry / CHECKED_FILE).read_text(encoding="utf-8"))
            == identity(entry / WEIGHTS_FILE)
        )
    except (OSError, ValueError):
        return False


def remember(entry: Path) -> None:
    with suppress(OSError):  # a read-only cache is checked at every start
        write_whole(entry / CHECKED_FILE, identity(entry / WEIGHTS_FILE))


def write_whole(path: Path, content: object) -> None:
    """Writes JSON to a file that is complete or absent. Raises OSError."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as file:
        json.dump(content, file)
    Path(file.name).replace(path)


def identity(path: Path) -> list[int]:
    """Returns size, times and inode of a file, which change with its content."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
