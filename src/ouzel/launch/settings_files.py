"""Writes the settings files of a client into a directory of Ouzel.

A record beside the files has their digests as `ouzel launch` wrote them. A file with another
content was changed by the user or by the client, and is replaced only with the user's consent.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ouzel.client.base import UNREADABLE
from ouzel.launch.client import LaunchError

_RECORD = ".written-by-ouzel-launch.json"


def write_files(
    directory: Path, files: Mapping[str, str], may_replace: Callable[[list[Path]], bool]
) -> list[Path]:
    """Writes the files and returns their paths.

    `may_replace` is asked about changed files. Raises LaunchError if it refuses, or if a file
    cannot be written; then all files are as before, except after an error of the disk.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = _read_record(directory)
        changed = [
            directory / name
            for name, text in files.items()
            if _is_changed(directory / name, text, written.get(name, ""))
        ]
        if changed and not may_replace(changed):
            raise LaunchError(f"{', '.join(map(str, changed))}: kept; nothing was started")
        for name, text in files.items():
            _replace(directory / name, text.encode())
        digests = {name: _digest(text.encode()) for name, text in files.items()}
        _replace(directory / _RECORD, msgspec.json.encode({**written, **digests}))
    except OSError as error:
        reason = error.strerror or str(error)
        raise LaunchError(f"{error.filename or directory}: cannot be written: {reason}") from error
    return [directory / name for name in files]


def find_directory(client: str, environment: Mapping[str, str]) -> Path:
    base = environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base).absolute() / "ouzel" / "launch" / client


def _read_record(directory: Path) -> dict[str, str]:
    """Reads the digests by name; an unreadable record counts as none, so the user is asked."""
    try:
        return msgspec.json.decode((directory / _RECORD).read_bytes(), type=dict[str, str])
    except (FileNotFoundError, *UNREADABLE):
        return {}


def _is_changed(path: Path, text: str, written_digest: str) -> bool:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return path.is_symlink()
    return content != text.encode() and _digest(content) != written_digest


def _replace(path: Path, content: bytes) -> None:
    """Replaces a file in one step; the file is readable by its owner only."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
