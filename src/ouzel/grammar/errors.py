"""Reading a demand raises these errors; the compiler, in the engine's process, has its own."""


class GrammarError(ValueError):
    """A demand cannot be honoured; the message is for the client and names the place, the keyword and any limit."""
