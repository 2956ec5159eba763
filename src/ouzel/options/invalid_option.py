"""These errors say what is wrong with the options."""

from typing import ClassVar

from ouzel.errors import OuzelError


class InvalidOption(OuzelError):
    """Names the option, where it was given, what is allowed and what was given."""

    exit_status: ClassVar[int] = 2  # of the process, as argparse has it


class InvalidValue(InvalidOption):
    """Holds the option and the complaint apart, so that the caller can name the file or variable that has the value."""

    def __init__(self, option: str, flag: str, complaint: str) -> None:
        super().__init__(f"{flag}: {complaint}")
        self.option = option
        self.complaint = complaint


class CannotListen(InvalidOption):
    """The address is another's now: nothing need be wrong with the option."""

    exit_status = 1
