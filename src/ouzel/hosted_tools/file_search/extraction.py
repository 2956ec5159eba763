"""Reads the text of uploaded files, in a process with limits: files may be hostile."""

import asyncio
import importlib.util
from pathlib import PurePosixPath
from typing import assert_never

import msgspec

from ouzel.extras import install_hint
from ouzel.file_text.tasks import FACTORY, FileText, Outcome, ReadFile, TooLong, Unreadable
from ouzel.hosted_tools.file_search.errors import UnreadableFile
from ouzel.limited_process import (
    JobEnded,
    JobLost,
    LimitedProcess,
    Limits,
    MemoryLimitExceeded,
    TimeLimitExceeded,
)
from ouzel.store.vector_stores.records import ErrorCode

MAX_FILE_BYTES = 128 * 2**20
MAX_TEXT_CHARS = 20_000_000
_LIMITS = Limits(wall_s=300.0, cpu_s=120.0, memory_bytes=2 * 2**30)

_BROKEN = "the file is broken"
_decode = msgspec.msgpack.Decoder(Outcome).decode
_EXTRA_OF_SUFFIX = {".pdf": ("pypdfium2", "documents")}


class Extractor:
    """Reads files one after the other; belongs to one event loop."""

    def __init__(self, limits: Limits = _LIMITS) -> None:
        self._process = LimitedProcess(FACTORY, {}, limits)

    async def read_text(self, filename: str, data: bytes) -> str:
        """Returns the text of a file. Raises UnreadableFile."""
        suffix = PurePosixPath(filename).suffix.lower()
        module, extra = _EXTRA_OF_SUFFIX.get(suffix, ("", ""))
        if module and importlib.util.find_spec(module) is None:
            raise UnreadableFile(
                "unsupported_file", f"this server cannot read {suffix} files: {install_hint(extra)}"
            )
        job = msgspec.msgpack.encode(ReadFile(filename, data, MAX_TEXT_CHARS))
        try:
            outcome: Outcome = _decode(await asyncio.to_thread(self._process.run, job))
        except TimeLimitExceeded:
            raise UnreadableFile("invalid_file", "reading the file takes too long") from None
        except MemoryLimitExceeded:
            raise UnreadableFile("invalid_file", "reading the file takes too much memory") from None
        except JobLost as ended:
            raise UnreadableFile("server_error", str(ended)) from None
        except JobEnded:
            raise UnreadableFile("invalid_file", _BROKEN) from None
        match outcome:
            case FileText(text=text):
                return text
            case TooLong():
                raise UnreadableFile(
                    "invalid_file",
                    f"the text must have <= {MAX_TEXT_CHARS} characters, it has more",
                )
            case Unreadable(reason=reason, is_supported=is_supported):
                code: ErrorCode = "invalid_file" if is_supported else "unsupported_file"
                raise UnreadableFile(code, reason)
            case unreachable:
                assert_never(unreachable)

    def close(self) -> None:
        self._process.close()
