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
from ouzel.pooling import Task, VectorForm
from ouzel.vectors import EncodedText, LateScores, LateTexts, TextEncoder, VectorRun
from ouzel.vectors.vector_run import Consume

MAX_TEXTS = 2048  # OpenAI's limit
# numbers that are encoded within a moment
_FEW_VALUES = 4096

Result = TypeVar("Result")


class VectorMaker:
    def __init__(self, services: Services) -> None:
        self.model = services.model
        self.encoder = TextEncoder(services.model) if services.model.sentences is not None else None
        self.late = self._make_late_texts()
        self._metrics = services.metrics
        self._threads = services.threads

    @property
    def task(self) -> Task:
        return self.model.engine.info.task

    @property
    def vector_size(self) -> int:
        return self.model.engine.info.vector_size

    def check_task(
        self, *tasks: Task, form: VectorForm | None = "text"
    ) -> tuple[TextEncoder, SentenceFiles]:
        """Returns the encoder and the sentence files of the model, if it has one of the tasks and
        makes vectors of this form (None: of any form).

        Raises InvalidRequest for other models; the error says which model would help.
        """
        encoder, sentences = self.encoder, self.model.sentences
        if encoder is not None and sentences is not None and self.task in tasks:
            if form is None or form in self.model.engine.info.forms:
                return encoder, sentences
            raise InvalidRequest(
                f"the model {self.model.names[0]!r} makes a vector of each token and none of a "
                "whole text: POST /pooling returns its vectors; /v1/rerank and /v1/score compare "
                "texts by them",
                param="model",
            )
        names = " or ".join(f"--task {task}" for task in tasks)
        raise InvalidRequest(
            f"{describe_wrong_task(self.model, tasks[0])}: "
            f"serve another model, or this one with {names} if it supports both",
            param="model",
        )

    def _make_late_texts(self) -> LateTexts | None:
        files = self.model.sentences
        if self.encoder is None or files is None or files.interaction is None:
            return None
        if "tokens" not in self.model.engine.info.forms:
            return None
        return LateTexts(self.model, self.encoder, files, files.interaction)

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
        run = self._start(request, texts, priority=priority, token_ids=token_ids)
        return await run.vectors(), run.usage()

    async def results(
        self,
        request: Request,
        texts: Sequence[EncodedText],
        *,
        form: VectorForm,
        priority: int = 0,
    ) -> tuple[list[NDArray[np.float32]], Usage]:
        """Returns the result of each text in that form, and the usage."""
        run = self._start(request, texts, priority=priority, form=form)
        await run.compute()
        return run.results(), run.usage()

    async def scores(
        self,
        request: Request,
        texts: Sequence[EncodedText],
        places: Sequence[tuple[int, int]],
        *,
        priority: int = 0,
    ) -> tuple[list[float], Usage]:
        """Returns the score of each pair of `places` by the vectors of tokens, and the usage."""
        files = self.model.sentences
        assert files is not None, "checked when the texts were encoded"
        assert files.interaction is not None, "checked when the texts were encoded"
        scores = LateScores(texts, places, is_mean=files.interaction.is_mean)
        run = self._start(request, texts, priority=priority, form="tokens", consume=scores.take)
        await run.compute()
        values: list[float] = scores.values.tolist()
        return values, run.usage()

    def _start(
        self,
        request: Request,
        texts: Sequence[EncodedText],
        *,
        priority: int,
        token_ids: tuple[int, ...] = (),
        form: VectorForm = "text",
        consume: Consume | None = None,
    ) -> VectorRun:
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
            form=form,
            consume=consume,
        )
        exchange.other_work = run
        return run

    async def write(
        self, vectors: NDArray[np.float32], write: Callable[[NDArray[np.float32]], Result]
    ) -> Result:
        return (
            write(vectors)
            if vectors.size <= _FEW_VALUES
            else await asyncio.to_thread(write, vectors)
        )

    async def write_all(
        self,
        results: list[NDArray[np.float32]],
        write: Callable[[list[NDArray[np.float32]]], Result],
    ) -> Result:
        is_short = sum(result.size for result in results) <= _FEW_VALUES
        return write(results) if is_short else await asyncio.to_thread(write, results)


def encode_numbers(vector: NDArray[np.float32]) -> list[float]:
    """Encodes a vector as JSON. The result stands for the list of numbers in a struct."""
    return cast(list[float], msgspec.Raw(msgspec.json.encode(vector.tolist())))
