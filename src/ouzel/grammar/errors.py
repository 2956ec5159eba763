"""The error of an unsupported demand; the compiler in the engine's process has its own errors."""


class GrammarError(ValueError):
    """A demand cannot be honoured.

    The client's message names the place, the keyword and any limit.
    """
