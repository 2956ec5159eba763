"""The error of a command or message of the user is shown; the chat goes on."""

from ouzel.errors import OuzelError


class ChatError(OuzelError):
    """A command or option of the user is wrong; the message names it and the given value."""
