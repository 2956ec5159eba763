"""Downloads files of a repository into the hub's cache, and resumes interrupted downloads.

Rules
1. The cache has the layout of the hub's own library, so that other programs find the files.
2. This module downloads large files; the library downloads small ones, and never resumes. The part
   of a large file lies beside the complete ones as `<etag>.incomplete`, a name that the hub's own
   tools know and remove.
3. Only one process writes a file at a time: it holds the lock of the file. A second one gets an
   error.
4. The checksum of a file is compared before the file gets its name, if the hub has one. A small
   file, which has its name already, is removed if it differs.
5. If the hub is out of reach, the cache serves, provided that it has all files.
"""

import fcntl
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import httpx2
from huggingface_hub import HfApi, constants, get_session, snapshot_download
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import (
    build_hf_headers,
    disable_progress_bars,
    filter_repo_objects,
    hf_raise_for_status,
)

from ouzel.model_store.download_progress import Transfer, tell_file
from ouzel.model_store.failures import FAILURES, NotEnoughDisk, is_unreachable
from ouzel.model_store.hub_names import check_file_name, check_key
from ouzel.model_store.hub_session import EXEMPT, bounded_answers
from ouzel.model_store.remote_file import RemoteFile, describe_file
from ouzel.observability.progress import Stage, stage
from ouzel.observability.progress_bar import amount

PIECE_BYTES = 2**20
NUM_AT_ONCE = 4
MAX_ATTEMPTS = 5  # attempts in a row that received nothing
PAUSE_S = 1.0  # the wait before another attempt
MAX_FILES = 100_000  # files of a repository
SPARE_BYTES = 64 * 2**20  # free space that a download leaves on the disk


class Interrupted(Exception):
    """Ends a download because another file has failed, or the user has interrupted."""


@bounded_answers()
def fetch(
    repo_id: str,
    patterns: Sequence[str],
    left_out: Sequence[str] = (),
    branch: str = constants.DEFAULT_REVISION,
) -> Path:
    """Downloads all files that match, and returns the directory of the snapshot.

    `branch` may also be a tag or a commit. The revision is its newest one of the hub or the cache.
    Raises the errors in `failures.FAILURES`.
    """
    disable_progress_bars()  # the bars of the hub's library
    wanted, unwanted = list(patterns), list(left_out)
    try:
        found = HfApi().model_info(repo_id, revision=branch)
    except FAILURES as error:
        if not is_unreachable(error):
            raise
        return Path(
            snapshot_download(
                repo_id,
                revision=branch,
                local_files_only=True,
                allow_patterns=wanted,
                ignore_patterns=unwanted,
            )
        )
    assert found.sha is not None, "the hub names no revision"
    check_key("revision", found.sha)
    folder = Path(constants.HF_HUB_CACHE, repo_folder_name(repo_id=repo_id, repo_type="model"))
    names = [each.rfilename for each in found.siblings or ()]
    if len(names) > MAX_FILES:
        raise ValueError(f"the hub names {len(names)} files; a repository may have {MAX_FILES}")
    matching = [*filter_repo_objects(names, allow_patterns=wanted, ignore_patterns=unwanted)]
    for name in matching:
        check_file_name(name)
    missing = [name for name in matching if not (folder / "snapshots" / found.sha / name).exists()]
    files = describe_files(repo_id, found.sha, missing, folder / "blobs")
    if files:
        fetch_large(repo_id, files, folder / "blobs")
    directory = Path(
        snapshot_download(
            repo_id, revision=found.sha, allow_patterns=wanted, ignore_patterns=unwanted
        )
    )
    check_small_files(directory, files)
    remember_newest(folder, branch, found.sha)
    return directory


def remember_newest(folder: Path, branch: str, revision: str) -> None:
    """Writes into the cache which revision a branch was, for programs that run without the hub."""
    if branch == revision:
        return
    path = folder / "refs" / branch
    if path.exists() and path.read_text(encoding="utf-8") == revision:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", opener=open_unless_link) as written:
        written.write(revision)


def describe_files(
    repo_id: str, revision: str, names: Iterable[str], blobs: Path
) -> list[RemoteFile]:
    """Asks the hub for size and etag of each file, several at the same time."""
    with ThreadPoolExecutor(NUM_AT_ONCE) as threads:
        return [*threads.map(lambda name: describe_file(repo_id, revision, name, blobs), names)]


def fetch_large(repo_id: str, files: Sequence[RemoteFile], blobs: Path) -> None:
    """Downloads the large ones of the files, if the disk has room for all of them.

    Raises NotEnoughDisk.
    """
    # Several names may have the same content.
    missing = {file.etag or file.name: file for file in files if not is_here(file)}
    if not missing:
        return
    blobs.mkdir(parents=True, exist_ok=True)
    check_disk(missing.values(), blobs)
    for file in missing.values():
        tell_file(file.progress(file.num_bytes_here if file.is_large else 0))
    large = [file for file in missing.values() if file.is_large]
    if not large:
        return
    total, here = sum(file.size for file in large), sum(file.num_bytes_here for file in large)
    with stage(f"fetching {repo_id}", total, done_bytes=here) as fetching:
        fetch_all(large, fetching)


def is_here(file: RemoteFile) -> bool:
    return bool(file.etag) and file.blob.exists()


def check_disk(files: Iterable[RemoteFile], blobs: Path) -> None:
    needed = sum(file.size - min(file.num_bytes_here, file.size) for file in files)
    free = shutil.disk_usage(blobs).free
    if free < needed + SPARE_BYTES:
        raise NotEnoughDisk(
            f"{amount(needed)} are still to be fetched, and {blobs} has {amount(free)} free, of "
            f"which {amount(SPARE_BYTES)} are spared"
        )


def check_small_files(directory: Path, files: Iterable[RemoteFile]) -> None:
    """Checks the files that the hub's library has downloaded; removes a wrong one.

    Raises ConnectionError.
    """
    for file in files:
        if file.is_large:
            continue
        if not file.matches(directory / file.name):
            (directory / file.name).unlink()
            file.blob.unlink(missing_ok=True)
            raise _differs(file)
        tell_file(file.progress(file.size))


def fetch_all(files: Sequence[RemoteFile], fetching: Stage) -> None:
    """Downloads the files at the same time; raises the first failure when all have stopped."""
    stopping = threading.Event()
    with ThreadPoolExecutor(NUM_AT_ONCE, "fetch") as threads:
        running = []
        for file in files:
            transfer = Transfer(file.progress(file.num_bytes_here), fetching)
            running.append(threads.submit(fetch_file, file, transfer, stopping))
        try:
            wait(running, return_when=FIRST_EXCEPTION)
        finally:
            stopping.set()
            for waiting in running:
                waiting.cancel()
    failures = [each.exception() for each in running if not each.cancelled()]
    for failure in sorted(filter(None, failures), key=lambda error: isinstance(error, Interrupted)):
        raise failure


def fetch_file(file: RemoteFile, transfer: Transfer, stopping: threading.Event) -> None:
    with locked(file.incomplete) as content:
        content.seek(0, os.SEEK_END)
        num_failed = 0
        while content.tell() < file.size:
            before = content.tell()
            try:
                take(file, content, transfer, stopping)
            except FAILURES as error:
                if not is_unreachable(error):
                    raise
                transfer.tell()
                num_failed = 0 if content.tell() > before else num_failed + 1
                if num_failed >= MAX_ATTEMPTS or stopping.wait(PAUSE_S):
                    raise
        content.flush()
        os.fsync(content.fileno())
        transfer.tell(is_verifying=True)
        if content.tell() != file.size or not file.matches(file.incomplete):
            content.truncate(0)
            raise _differs(file)
        file.incomplete.replace(file.blob)


def _differs(file: RemoteFile) -> ConnectionError:
    return ConnectionError(
        f"{file.name} came otherwise than the hub says, and has to be fetched again"
    )


def take(
    file: RemoteFile, content: BinaryIO, transfer: Transfer, stopping: threading.Event
) -> None:
    """Appends the missing content to the file, as far as it arrives.

    Raises HfHubHTTPError, httpx2.TransportError and Interrupted.
    """
    begin = content.tell()
    # A part of a compressed file could not be resumed.
    headers = build_hf_headers() | {"Accept-Encoding": "identity"}
    if begin:
        headers["Range"] = f"bytes={begin}-"
    with get_session().stream(
        "GET",
        file.url,
        headers=headers,
        follow_redirects=True,
        timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
        extensions=EXEMPT,
    ) as response:
        hf_raise_for_status(response)
        # Without PARTIAL_CONTENT the server sends the file from its start.
        if begin and response.status_code != httpx2.codes.PARTIAL_CONTENT:
            content.truncate(0)
            content.seek(0)
            transfer.advance(-begin)
        for piece in response.iter_raw(PIECE_BYTES):
            if content.tell() + len(piece) > file.size:
                content.truncate(0)
                raise ValueError(
                    f"{file.name} is longer than the {file.size} bytes that the hub says"
                )
            content.write(piece)
            transfer.advance(len(piece))
            if stopping.is_set():
                content.flush()
                raise Interrupted
    if content.tell() < file.size:
        raise ConnectionError(f"{file.name} was cut off at {content.tell()} of {file.size} bytes")


@contextmanager
def locked(path: Path) -> Iterator[BinaryIO]:
    """Opens the file for appending; only one process at a time can."""
    with open(path, "ab+", opener=open_unless_link) as content:
        try:
            fcntl.flock(content, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                f"another process is downloading {path.stem}; wait for it"
            ) from None
        yield content


def open_unless_link(path: str, flags: int) -> int:
    """Opens a file of the cache; raises OSError for a link, which could lead out of the cache."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)
