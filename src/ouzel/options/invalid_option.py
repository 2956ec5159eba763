"""Defines the errors of wrong options."""

from typing import ClassVar

from ouzel.errors import OuzelError


class InvalidOption(OuzelError):
    """The message names the option, its source, the allowed values and the given value."""

    exit_status: ClassVar[int] = 2  # the status of the process, as for errors of argparse


class InvalidValue(InvalidOption):
    """Holds option and complaint apart, so that a caller can name the source of the value."""

    def __init__(self, option: str, flag: str, complaint: str) -> None:
        super().__init__(f"{flag}: {complaint}")
        self.option = option
        self.complaint = complaint


class CannotListen(InvalidOption):
    """Another program uses the address; the option itself need not be wrong."""

    exit_status = 1
