"""Reads files that a request names by path, from one directory only.

Rules
1. A path that begins outside the directory, or contains `..`, is refused before any look-up. A
   path that leads outside by symbolic links gets the same error, so that the error tells nothing
   about files outside.
2. Symbolic links are resolved first. Then the file is opened component by component from the
   directory, without following links: a component that is replaced by a link meanwhile is refused.
3. Only regular files are read, and opening a file never blocks, as it would for a pipe.
"""

import os
import stat
from pathlib import Path

from ouzel.errors import InvalidRequest
from ouzel.prompts.media.fetching.sources import BARE_FORM
from ouzel.prompts.media.picture import PictureLimits, check_file_size

_OPTION = "allowed_local_media_path"
_MAX_SHOWN = 200
_MAX_PATH_LEN = 4096
_READ_LEN = 2**20
# Windows lacks these flags and cannot open relative to a directory; there, links are resolved only
# once.
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_NEVER_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_OPENS_RELATIVELY = os.open in os.supports_dir_fd


class LocalFiles:
    """Reads files below the directory that the options allow."""

    def __init__(self, directory: str) -> None:
        """`directory` is "" if no local files are allowed."""
        self._directory = os.path.abspath(directory) if directory else ""
        self._real_directory = os.path.realpath(directory) if directory else ""

    def read(self, file_path: str, path: str, limits: PictureLimits) -> bytes:
        """Reads a file below the allowed directory.

        `path` is the path of the content part, for errors. Raises InvalidRequest.
        """
        if not self._directory:
            raise InvalidRequest(
                f"must be a data URL, {BARE_FORM}, or a URL: this server reads no local files "
                f"({_OPTION}), given {_shown(file_path)}",
                field=path,
            )
        inner_path = self._inner_path(file_path, path)
        try:
            descriptor = self._open(inner_path)
        except (OSError, ValueError):  # ValueError: a name that the file system does not allow
            raise _unreadable(file_path, path) from None
        try:
            return _read_regular_file(descriptor, file_path, path, limits)
        except OSError:
            raise _unreadable(file_path, path) from None
        finally:
            os.close(descriptor)

    def _inner_path(self, file_path: str, path: str) -> Path:
        """Returns the path relative to the real directory, with links resolved."""
        if len(file_path) > _MAX_PATH_LEN:
            raise _unreadable(file_path, path)
        if ".." in file_path.replace("\\", "/").split("/"):
            raise InvalidRequest(
                f"must be a path without '..', given {_shown(file_path)}", field=path
            )
        named = Path(file_path)
        outside = InvalidRequest(
            f"must be the path of a file in the server's {_OPTION}", field=path
        )
        if named.is_absolute():
            inside = [
                root
                for root in (self._directory, self._real_directory)
                if named.is_relative_to(root)
            ]
            if not inside:
                raise outside
            named = named.relative_to(inside[0])
        try:
            real_path = os.path.realpath(os.path.join(self._real_directory, named))
            return Path(real_path).relative_to(self._real_directory)
        except OSError:
            raise _unreadable(file_path, path) from None
        except ValueError:  # the path leads outside, or contains a null character
            raise outside from None

    def _open(self, inner_path: Path) -> int:
        if not _OPENS_RELATIVELY:
            return os.open(os.path.join(self._real_directory, inner_path), os.O_RDONLY | _BINARY)
        directory = os.open(self._real_directory, os.O_RDONLY | _DIRECTORY)
        try:
            for name in inner_path.parts[:-1]:
                inner = os.open(name, os.O_RDONLY | _DIRECTORY | _NO_LINKS, dir_fd=directory)
                os.close(directory)
                directory = inner
            return os.open(inner_path.name, os.O_RDONLY | _NO_LINKS | _NEVER_WAIT, dir_fd=directory)
        finally:
            os.close(directory)


def _read_regular_file(descriptor: int, file_path: str, path: str, limits: PictureLimits) -> bytes:
    """Reads a file to its end. Raises OSError or InvalidRequest."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise _unreadable(file_path, path)
    check_file_size(status.st_size, path, limits)
    data = bytearray()
    # The file may grow meanwhile, and some file systems report a size of 0.
    while piece := os.read(descriptor, _READ_LEN):
        data += piece
        check_file_size(len(data), path, limits)
    return bytes(data)


def _unreadable(file_path: str, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"must be the path of a regular file that can be read, given {_shown(file_path)}",
        field=path,
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…")
