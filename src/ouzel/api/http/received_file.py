"""Holds the file of a form in memory until its endpoint has read it."""

from ouzel.api.http.body_budget import Share


class ReceivedFile:
    def __init__(self, data: bytes, share: Share) -> None:
        """`share` counts the bytes of the form in the budget of all bodies."""
        self.data = data
        self._share = share

    def drop(self) -> None:
        """Frees the bytes, and returns them to the budget."""
        self.data = b""
        self._share.shrink_to(0)
