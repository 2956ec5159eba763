"""Reads the texts of documents without pages, such as Word files, in a limited process."""

import msgspec

from ouzel.errors import EngineUnavailable, InvalidRequest
from ouzel.file_text.tasks import FACTORY, FileText, Outcome, ReadFile, TooLong, Unreadable
from ouzel.limited_process import (
    JobEnded,
    JobLost,
    LimitedProcess,
    Limits,
    MemoryLimitExceeded,
    TimeLimitExceeded,
)
from ouzel.prompts.media.document import OtherFile

EXPECTED = "a PDF, a Word file (.docx) or a text"
READING_BYTES = 256 * 2**20  # memory for the text and the tables of the file
_RETRY_AFTER_S = 1.0

_decode = msgspec.msgpack.Decoder(Outcome).decode


class FileTexts:
    """Reads files in one limited process, which starts with the first file. Threads call it."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._process = LimitedProcess(
            FACTORY, {}, Limits(wall_s=timeout_s, memory_bytes=READING_BYTES)
        )

    def close(self) -> None:
        self._process.close()

    def read(self, file: OtherFile, max_chars: int, left_s: float) -> str | None:
        """Returns the text; None if it has more than `max_chars` characters.

        The bytes of the file tell its type. Raises InvalidRequest or EngineUnavailable.
        """
        num_bytes = len(file.data)
        limits = Limits(wall_s=left_s, memory_bytes=READING_BYTES + 3 * num_bytes)
        # No name: a file that is a text stays as it is, with the markup of HTML.
        task = msgspec.msgpack.encode(ReadFile("", file.data, max_chars))
        try:
            outcome: Outcome = _decode(self._process.run(task, limits))
        except JobLost as lost:
            raise EngineUnavailable(
                f"documents cannot be read now: {lost}", retry_after_s=_RETRY_AFTER_S
            ) from lost
        except JobEnded as ended:
            raise InvalidRequest(
                f"must be a document {self._describe_end(ended)}, given {num_bytes} bytes",
                field=file.path,
            ) from ended
        match outcome:
            case FileText(text=text):
                return text
            case TooLong():
                return None
            case Unreadable(reason=reason):
                raise InvalidRequest(
                    f"must be {EXPECTED}, given {num_bytes} bytes: {reason}", field=file.path
                )

    def _describe_end(self, ended: JobEnded) -> str:
        match ended:
            case TimeLimitExceeded():
                return f"that is read in <= {self._timeout_s:g} s (pdf_timeout_s)"
            case MemoryLimitExceeded():
                return f"that is read within {READING_BYTES // 2**20} MiB of memory"
            case _:
                return "that is complete"
