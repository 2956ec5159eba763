"""Declares the interface of a loader, which loads models while the server runs."""

from collections.abc import Mapping
from typing import Protocol

from ouzel.generation import ServedModel


class ModelLoader(Protocol):
    async def load(self, fields: Mapping[str, object]) -> ServedModel:
        """Starts a model with the fields `name`, `model` and options. Raises InvalidRequest."""
        ...

    async def unload(self, model: ServedModel) -> None:
        """Waits for running requests, up to a limit, and frees the model's memory."""
        ...
