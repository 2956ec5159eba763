"""Endpoints of vectors read their texts beside the event loop, and let the engine make something of them.

What is written of many vectors is written beside it, too, and one vector at a time: while a library makes JSON of
millions of numbers no other thread runs.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request

from ouzel.api.endpoint.services import Services
from ouzel.api.http.exchange import get_exchange
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.errors import InvalidRequest
from ouzel.generation import Usage
from ouzel.pooling import Task
from ouzel.vectors import EncodedText, TextEncoder, VectorRun

MAX_TEXTS = 2048  # OpenAI's limit
_FEW_VALUES = 4096  # which are written within a moment

Result = TypeVar("Result")


class VectorMaking:
    def __init__(self, services: Services) -> None:
        self.model = services.model
        self.encoder = TextEncoder(services.model) if services.model.sentences is not None else None
        self._metrics = services.metrics
        self._threads = services.threads

    @property
    def task(self) -> Task:
        return self.model.engine.info.task

    @property
    def vector_size(self) -> int:
        return self.model.engine.info.vector_size

    def check_task(self, *tasks: Task) -> tuple[TextEncoder, SentenceFiles]:
        """Raises InvalidRequest where the model was made for something else; it says what would help."""
        encoder, sentences = self.encoder, self.model.sentences
        if encoder is not None and sentences is not None and self.task in tasks:
            return encoder, sentences
        does = {
            "generate": "generates text",
            "embed": "makes embeddings",
            "score": "scores pairs of texts",
        }
        wanted = {"generate": "text", "embed": "embeddings", "score": "scores"}[tasks[0]]
        names = " or ".join(f"--task {task}" for task in tasks)
        raise InvalidRequest(
            f"the model {self.model.names[0]!r} {does[self.task]} and makes no {wanted}: "
            f"serve one that does, or this one with {names} where it can be both",
            param="model",
        )

    async def read(self, work: Callable[[], Result], body: bytes) -> Result:
        return await self._threads.run(work, len(body))

    async def vectors(
        self,
        request: Request,
        texts: Sequence[EncodedText],
        *,
        priority: int = 0,
        token_ids: tuple[int, ...] = (),
    ) -> tuple[NDArray[np.float32], Usage]:
        """Returns [texts, vector size] as the model gives them; with `token_ids` their logits."""
        exchange = get_exchange(request.scope)
        run = VectorRun(
            texts,
            self.model,
            self._metrics,
            request_id=exchange.request_id,
            key_id=exchange.key_id,
            arrival_s=exchange.arrival_s,
            priority=priority,
            token_ids=token_ids,
        )
        exchange.vectors = run
        return await run.vectors(), run.usage()

    async def written(
        self, vectors: NDArray[np.float32], write: Callable[[NDArray[np.float32]], Result]
    ) -> Result:
        return (
            write(vectors)
            if vectors.size <= _FEW_VALUES
            else await asyncio.to_thread(write, vectors)
        )


def json_numbers(vector: NDArray[np.float32]) -> list[float]:
    """Returns them as JSON already, which stands for the list wherever it is written."""
    return cast(list[float], msgspec.Raw(msgspec.json.encode(vector.tolist())))
