"""Knows the files of a container by the ids that clients have for them."""

import secrets
import time
from collections.abc import Iterable
from pathlib import PurePosixPath

from ouzel.hosted_tools.code_interpreter.frames import FileFacts
from ouzel.hosted_tools.code_interpreter.records import (
    ContainerFile,
    ContainerFileNotFound,
    FileRefused,
)

_MAX_NAME = 200


class ContainerFiles:
    def __init__(self) -> None:
        self._by_path: dict[str, ContainerFile] = {}
        self._of_users: set[str] = set()  # paths that clients have written

    def note_users(self, path: str) -> None:
        """Notes that a client has written a file; it gets a new id when it is listed next."""
        self._of_users.add(path)
        self._by_path.pop(path, None)

    def update(self, facts: Iterable[FileFacts], changed: Iterable[str]) -> list[ContainerFile]:
        """Takes over the files that the work directory has now; returns the changed files."""
        known, self._by_path = self._by_path, {}
        for path, size_bytes in sorted((each.path, each.size_bytes) for each in facts):
            earlier = known.get(path)
            self._by_path[path] = ContainerFile(
                id=f"cfile_{secrets.token_hex(16)}" if earlier is None else earlier.id,
                path=path,
                size_bytes=size_bytes,
                created_at=time.time() if earlier is None else earlier.created_at,
                is_users=path in self._of_users,
            )
        self._of_users &= self._by_path.keys()
        return [self._by_path[path] for path in changed if path in self._by_path]

    def list(self) -> "list[ContainerFile]":
        """Returns the files, the oldest first."""
        return sorted(self._by_path.values(), key=lambda file: file.created_at)

    def find(self, file_id: str) -> ContainerFile:
        for file in self._by_path.values():
            if file.id == file_id:
                return file
        raise ContainerFileNotFound(file_id)

    def find_path(self, path: str) -> ContainerFile:
        found = self._by_path.get(path)
        if found is None:
            raise FileRefused(f"{path} was not kept: the container has too many files")
        return found


def check_file_name(name: str) -> str:
    """Returns the last part of a client's file name. Raises FileRefused."""
    last = PurePosixPath(name.replace("\\", "/")).name
    if last in ("", ".", "..") or not last.isprintable() or len(last.encode()) > _MAX_NAME:
        raise FileRefused(
            f"must be a printable name of at most {_MAX_NAME} bytes, given {name[:300]!r}",
            field="file",
        )
    return last
