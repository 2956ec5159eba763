"""What is wrong with the options."""

from ouzel.errors import OuzelError


class InvalidOption(OuzelError):
    """Names the option, where it was given, what is allowed and what was given."""
