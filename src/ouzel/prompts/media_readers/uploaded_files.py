"""Finds the uploaded files that messages name by their ids.

Protocol
1. Messages are read in threads, which must not wait. If a message names a file that is not open,
   reading raises `FilesNeeded`.
2. The caller opens the files outside of the threads (`FilesNeeded.provide_prerequisite`), and reads
   the messages again within that context, where the files are found.
3. The files come from the source in scope (`use_files`), which knows only files of the API key of
   the request.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from ouzel.errors import InvalidRequest
from ouzel.prompts.media_readers.wrong_values import invalid
from ouzel.worker_threads import PrerequisiteMissing

KEY = "file_id"  # the field of a part that names a file
MAX_FILES = 256  # parts of a request with files
MAX_TEXT_CHARS = 16 * 2**20  # characters of files in all parts of a request


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A part that names a file."""

    file_id: str
    path: str  # path of the field, for errors


@dataclass(frozen=True, slots=True)
class OpenedFile:
    file_id: str
    filename: str
    content: bytes | str = field(repr=False)  # a text if the file is one
    space: object = field(repr=False, compare=False)  # the memory of the file is counted with it

    @property
    def url(self) -> str:
        """Returns a URL that no client can use; it tells pictures and PDFs of a request apart."""
        return f"uploaded:{self.file_id}"


class FileSource(Protocol):
    """Opens the files of one API key."""

    async def open(self, named: Sequence[NamedFile]) -> Mapping[str, OpenedFile]:
        """Returns the files by their ids.

        Raises InvalidRequest for a file that does not exist or is too large, and Overloaded.
        """
        ...


class FilesOfKeys(Protocol):
    """Finds the files of each API key."""

    def of_key(self, key_id: str | None) -> FileSource | None:
        """Returns the files of an API key; None if this server stores no files."""
        ...


_source: ContextVar[FileSource | None] = ContextVar("source_of_files", default=None)
_opened: ContextVar[Mapping[str, OpenedFile]] = ContextVar("opened_files")


class FilesNeeded(PrerequisiteMissing):
    """Raised by the reading of messages that name files which are not open."""

    def __init__(self, source: FileSource, named: Sequence[NamedFile]) -> None:
        super().__init__(f"{len(named)} files")
        self._source = source
        self._named = named

    def provide_prerequisite(self) -> AbstractAsyncContextManager[None]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[None, None]:
        found = await self._source.open(self._named)
        texts = (each.content for each in found.values() if isinstance(each.content, str))
        self.num_bytes = sum(map(len, texts))
        token = _opened.set({**_opened.get({}), **found})
        try:
            yield
        finally:
            _opened.reset(token)


@contextmanager
def use_files(source: FileSource | None) -> Iterator[None]:
    """Lets messages in the block name the files of `source`; None: no files."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


def require_files(named: Sequence[NamedFile]) -> None:
    """Checks that all files of a request are open, so that they are opened together.

    Raises FilesNeeded, and InvalidRequest if there are too many or their texts are too long.
    """
    if len(named) > MAX_FILES:
        raise InvalidRequest(
            f"must be one of <= {MAX_FILES} parts that name files, given {len(named)}",
            field=named[MAX_FILES].path,
        )
    opened = _find(named)
    num_chars = 0
    for each in named:
        content = opened[each.file_id].content
        num_chars += len(content) if isinstance(content, str) else 0
        if num_chars > MAX_TEXT_CHARS:
            raise InvalidRequest(
                f"must name files with <= {MAX_TEXT_CHARS} characters of text in all parts "
                "together",
                field=each.path,
            )


def open_named(fields: Mapping[str, object], path: str) -> OpenedFile | None:
    """Returns the file that the fields of a part name; None if they name none.

    `path` is the path of the fields. Raises FilesNeeded, and InvalidRequest for a wrong id.
    """
    file_id = fields.get(KEY)
    if file_id is None:
        return None
    own_path = f"{path}.{KEY}"
    if not isinstance(file_id, str) or not file_id:
        raise invalid(own_path, "the id of a file", file_id)
    return _find([NamedFile(file_id, own_path)])[file_id]


def name_file(fields: object, path: str) -> list[NamedFile]:
    """Returns the file that the fields of a part name, for `require_files`; ignores wrong ids."""
    file_id = fields.get(KEY) if isinstance(fields, dict) else None
    return [NamedFile(file_id, f"{path}.{KEY}")] if isinstance(file_id, str) and file_id else []


def _find(named: Sequence[NamedFile]) -> Mapping[str, OpenedFile]:
    opened = _opened.get({})
    missing = [each for each in named if each.file_id not in opened]
    if not missing:
        return opened
    source = _source.get()
    if source is None:
        raise InvalidRequest(
            f"must not be given: this server stores no files, given {missing[0].file_id[:40]!r}",
            field=missing[0].path,
        )
    raise FilesNeeded(source, missing)
