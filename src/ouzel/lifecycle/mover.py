"""Declares the work that the driver of loads and unloads leaves to the server."""

from typing import Protocol


class Mover(Protocol):
    """Moves models into memory and out of it."""

    async def measure(self, name: str) -> int:
        """Returns the bytes of memory that a model takes.

        Raises ModelNotFound if its files are gone, and other OuzelErrors.
        """
        ...

    async def load(self, name: str) -> None:
        """Loads a model. Raises ModelNotFound if its files are gone, and other OuzelErrors."""
        ...

    async def unload(self, name: str) -> None:
        """Frees the memory of a model that no request uses."""
        ...

    def num_unfinished(self, name: str) -> int:
        """Counts the requests in the engine of a loaded model."""
        ...

    async def wait_until_unused(self, name: str) -> None:
        """Waits until no request is in the engine of a loaded model."""
        ...

    def is_broken(self, name: str) -> bool:
        """Tells whether the engine of a loaded model has ended for good."""
        ...
