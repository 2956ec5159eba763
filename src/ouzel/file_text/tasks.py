"""Defines the messages to and from the limited process that reads texts of files."""

import msgspec

FACTORY = "ouzel.file_text.text_job:create_text_job"


class ReadFile(msgspec.Struct, frozen=True, array_like=True):
    filename: str  # its ending tells HTML from other texts; empty: the bytes alone decide
    data: bytes
    max_chars: int


class FileText(msgspec.Struct, frozen=True, tag="text"):
    text: str


class Unreadable(msgspec.Struct, frozen=True, tag="unreadable"):
    reason: str  # a sentence for the client, such as "the file is broken"
    is_supported: bool  # False: files of this type are never read


class TooLong(msgspec.Struct, frozen=True, tag="too long"):
    """The text has more than `max_chars` characters."""


Outcome = FileText | TooLong | Unreadable
