"""Reads texts on worker threads, and lets the engine make vectors or scores of them.

Answers with many vectors are encoded on worker threads too, vector by vector: encoding millions of
numbers in one call would block all other threads.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray
from starlette.requests import Request

from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.wrong_task import describe_wrong_task
from ouzel.api.http.exchange import get_exchange
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.errors import InvalidRequest
from ouzel.generation import Usage
from ouzel.pooling import Task
from ouzel.vectors import EncodedText, TextEncoder, VectorRun

MAX_TEXTS = 2048  # OpenAI's limit
# numbers that are encoded within a moment
_FEW_VALUES = 4096

Result = TypeVar("Result")


class VectorMaker:
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
        """Returns the encoder and the sentence files of the model, if it has one of the tasks.

        Raises InvalidRequest for other models; the error says which model would help.
        """
        encoder, sentences = self.encoder, self.model.sentences
        if encoder is not None and sentences is not None and self.task in tasks:
            return encoder, sentences
        names = " or ".join(f"--task {task}" for task in tasks)
        raise InvalidRequest(
            f"{describe_wrong_task(self.model, tasks[0])}: "
            f"serve another model, or this one with {names} if it supports both",
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
        """Returns an array [texts, vector size], or the logits of `token_ids`, and the usage."""
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

    async def write(
        self, vectors: NDArray[np.float32], write: Callable[[NDArray[np.float32]], Result]
    ) -> Result:
        return (
            write(vectors)
            if vectors.size <= _FEW_VALUES
            else await asyncio.to_thread(write, vectors)
        )


def encode_numbers(vector: NDArray[np.float32]) -> list[float]:
    """Encodes a vector as JSON. The result stands for the list of numbers in a struct."""
    return cast(list[float], msgspec.Raw(msgspec.json.encode(vector.tolist())))
