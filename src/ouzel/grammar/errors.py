"""What the front half raises."""


class GrammarError(ValueError):
    """The wish cannot be honoured; the message is for the client and names the place, the keyword and any limit."""
