"""These errors say what is wrong with the options."""

from typing import ClassVar

from ouzel.errors import OuzelError


class InvalidOption(OuzelError):
    """Names the option, where it was given, what is allowed and what was given."""

    exit_status: ClassVar[int] = 2  # of the process, as argparse has it


class CannotListen(InvalidOption):
    """The address is another's now: nothing need be wrong with the option."""

    exit_status = 1
