"""Models come and go while a server runs: the loader is who knows how."""

from collections.abc import Mapping
from typing import Protocol

from ouzel.generation import ServedModel


class ModelLoader(Protocol):
    async def load(self, fields: Mapping[str, object]) -> ServedModel:
        """Starts a model that has `name`, `model` and options of its own. Raises InvalidRequest."""
        ...

    async def unload(self, model: ServedModel) -> None:
        """Waits for what runs on it, up to a limit, and gives back what it takes."""
        ...
