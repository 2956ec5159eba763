"""Defines the errors of wrong options."""

from typing import ClassVar

from ouzel.errors import OuzelError


class InvalidOption(OuzelError):
    """The message names the option, its source, the allowed values and the given value."""

    exit_status: ClassVar[int] = 2  # the status of the process, as for errors of argparse


class InvalidValue(InvalidOption):
    """An error that has the option as a field: a caller can name its source instead of the flag."""

    def __init__(self, option: str, flag: str, complaint: str) -> None:
        super().__init__(f"{flag}: {complaint}")
        self.option = option
        self.complaint = complaint


class CannotListen(InvalidOption):
    """The server cannot listen on the address, for example because another program uses it."""

    exit_status = 1
