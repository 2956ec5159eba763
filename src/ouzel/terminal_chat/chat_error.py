"""What a user asked for in a chat cannot be done; the chat goes on."""

from ouzel.errors import OuzelError


class ChatError(OuzelError):
    """Its message names the file, the field or the command, and what was given."""
