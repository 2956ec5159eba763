"""Waits for a busy model, for work in the background that has time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ouzel.errors import TryLater
from ouzel.hosted_tools.file_search.embedder import Embedder, TextKind, Vectors

Result = TypeVar("Result")


class PatientEmbedder:
    """Implements `Embedder` with another one."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def choose_model(self) -> str:
        return self._embedder.choose_model()

    async def max_tokens(self, model: str) -> int:
        return await _try_again(lambda: self._embedder.max_tokens(model))

    async def count_tokens(self, model: str, texts: Sequence[str]) -> list[int]:
        return await _try_again(lambda: self._embedder.count_tokens(model, texts))

    async def embed(
        self, model: str, texts: Sequence[str], kind: TextKind, *, key_id: str | None
    ) -> Vectors:
        return await _try_again(lambda: self._embedder.embed(model, texts, kind, key_id=key_id))


async def _try_again(work: Callable[[], Awaitable[Result]]) -> Result:
    """Runs `work` until the model takes it."""
    while True:
        try:
            return await work()
        except TryLater as busy:
            await asyncio.sleep(busy.retry_after_s)
