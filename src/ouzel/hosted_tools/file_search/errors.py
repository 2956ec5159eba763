"""Defines the errors of files that cannot be indexed."""

from ouzel.errors import OuzelError
from ouzel.store.vector_stores.records import ErrorCode


class UnreadableFile(OuzelError):
    """The text of a file cannot be read; the message is for the client."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.file_code: ErrorCode = code
