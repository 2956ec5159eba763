"""Reads the text of uploaded files, in a process with limits: files may be hostile."""

import asyncio
import importlib.util
from pathlib import PurePosixPath

import msgspec

from ouzel.extras import install_hint
from ouzel.hosted_tools.file_search.errors import UnreadableFile
from ouzel.limited_process import (
    JobEnded,
    JobFailed,
    JobLost,
    LimitedProcess,
    Limits,
    MemoryLimitExceeded,
    TimeLimitExceeded,
)

MAX_FILE_BYTES = 128 * 2**20
MAX_TEXT_CHARS = 20_000_000
_LIMITS = Limits(wall_s=300.0, cpu_s=120.0, memory_bytes=2 * 2**30)

_BROKEN = "the file is broken"
_EXTRA_OF_SUFFIX = {".pdf": ("pypdfium2", "documents"), ".docx": ("docx", "documents")}


class ExtractionJob(msgspec.Struct, frozen=True, array_like=True):
    filename: str
    data: bytes
    max_chars: int


class Extractor:
    """Reads files one after the other; belongs to one event loop."""

    def __init__(self, limits: Limits = _LIMITS) -> None:
        self._process = LimitedProcess(
            "ouzel.hosted_tools.file_search.extraction_job:create_extraction_job", {}, limits
        )

    async def read_text(self, filename: str, data: bytes) -> str:
        """Returns the text of a file. Raises UnreadableFile."""
        suffix = PurePosixPath(filename).suffix.lower()
        module, extra = _EXTRA_OF_SUFFIX.get(suffix, ("", ""))
        if module and importlib.util.find_spec(module) is None:
            raise UnreadableFile(
                "unsupported_file", f"this server cannot read {suffix} files: {install_hint(extra)}"
            )
        job = msgspec.msgpack.encode(ExtractionJob(filename, data, MAX_TEXT_CHARS))
        try:
            return (await asyncio.to_thread(self._process.run, job)).decode()
        except JobFailed as ended:
            code, _, message = str(ended).partition(": ")
            if code == "unsupported_file":
                raise UnreadableFile("unsupported_file", message) from None
            is_known = code == "invalid_file"
            raise UnreadableFile("invalid_file", message if is_known else _BROKEN) from None
        except TimeLimitExceeded:
            raise UnreadableFile("invalid_file", "reading the file takes too long") from None
        except MemoryLimitExceeded:
            raise UnreadableFile("invalid_file", "reading the file takes too much memory") from None
        except JobLost as ended:
            raise UnreadableFile("server_error", str(ended)) from None
        except JobEnded:
            raise UnreadableFile("invalid_file", _BROKEN) from None

    def close(self) -> None:
        self._process.close()
