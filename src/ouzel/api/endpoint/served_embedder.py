"""Makes the vectors of file search with a served model, which is loaded if it comes and goes."""

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Protocol

from ouzel.api.endpoint.on_demand import ModelNotLoaded, OnDemand, find_name, hold_chosen
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker
from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.errors import EngineUnavailable, InvalidRequest, ModelNotFound
from ouzel.generation import in_background
from ouzel.hosted_tools.file_search.embedder import TextKind, Vectors
from ouzel.pooling import Task
from ouzel.vectors import EncodedText, TextEncoder, TextLimit, VectorRun, finish_vectors

_RETRY_AFTER_S = 2.0
_PROBE = "a"
_HINT = "serve a model for embeddings, for example beside the first one with --model"


class ServedModels(Protocol):
    """The part of the catalogue of models that is needed here."""

    @property
    def on_demand(self) -> OnDemand | None: ...

    @property
    def away(self) -> list[str]: ...

    def find(self, name: str | None) -> Services: ...

    def first_for(self, *tasks: Task) -> Services: ...

    def add_removal_listener(self, forget: Callable[[Services], None]) -> None: ...


class ServedEmbedder:
    """Implements `Embedder`. It belongs to one event loop."""

    def __init__(self, models: ServedModels, name: str = "") -> None:
        """`name` is the model for new vector stores; without it, the first model for vectors."""
        self._models = models
        self._name = name
        self._makers: dict[Services, VectorMaker] = {}
        models.add_removal_listener(self._forget)

    def _forget(self, services: Services) -> None:
        self._makers.pop(services, None)

    def choose_model(self) -> str:
        try:
            services = (
                self._models.find(self._name) if self._name else self._models.first_for("embed")
            )
        except ModelNotLoaded as away:
            return away.name
        except ModelNotFound:
            raise _refuse(self._name) from None
        if services.model.engine.info.task != "embed":
            raise _refuse(self._name)
        return services.model.names[0]

    async def max_tokens(self, model: str) -> int:
        async with self._hold(model) as services:
            encoder, files = self._make(services)
            limit = TextLimit(encoder.max_tokens, cuts=True)
            prompt = files.document_prompt.text
            probe = encoder.text(_PROBE, limit, field="", prompt=prompt)
            return max(encoder.max_tokens - len(probe.token_ids) + 1, 1)

    async def count_tokens(self, model: str, texts: Sequence[str]) -> list[int]:
        async with self._hold(model) as services:
            tokenizer = services.model.tokenizer

            def count() -> list[int]:
                return [len(tokenizer.encode(text, add_special_tokens=False)) for text in texts]

            return await asyncio.to_thread(count)

    async def embed(
        self, model: str, texts: Sequence[str], kind: TextKind, *, key_id: str | None
    ) -> Vectors:
        async with self._hold(model) as services:
            encoder, files = self._make(services)
            encode = partial(_encode, encoder, files, texts, kind)
            encoded = await asyncio.to_thread(encode)
            with services.admission.take_place():
                run = VectorRun(
                    encoded,
                    services.model,
                    services.metrics,
                    request_id=f"search-{secrets.token_hex(8)}",
                    key_id=key_id,
                    arrival_s=time.perf_counter(),
                )
                vectors = await run.vectors()
        return finish_vectors(vectors, files, dimensions=None, normalises=True)

    @asynccontextmanager
    async def _hold(self, model: str) -> AsyncGenerator[Services, None]:
        """Keeps a model in memory while the block runs.

        Raises InvalidRequest for a model that is not served, and EngineUnavailable.
        """
        on_demand = self._models.on_demand
        if on_demand is None:
            yield self._find(model)
            return
        self._check_disturbance(on_demand, model)

        async def choose() -> Services:
            return self._find(model)

        name = await find_name(on_demand, choose)
        async with hold_chosen(on_demand, choose, name) as (services, _):
            yield services

    def _find(self, model: str) -> Services:
        try:
            return self._models.find(model)
        except ModelNotFound:
            raise InvalidRequest(
                f"the vector store was made with the model {model!r}, which this server does not "
                "have now",
                field="vector_store_id",
            ) from None

    def _check_disturbance(self, on_demand: OnDemand, model: str) -> None:
        """Raises EngineUnavailable if work in the background would load a model beside users."""
        is_away = in_background.get() and model in self._models.away
        if is_away and any(each.num_open for each in on_demand.residents.models):
            raise EngineUnavailable("other models are in use", retry_after_s=_RETRY_AFTER_S)

    def _make(self, services: Services) -> tuple[TextEncoder, SentenceFiles]:
        maker = self._makers.get(services)
        if maker is None:
            maker = self._makers[services] = VectorMaker(services)
        return maker.check_task("embed")


def _refuse(name: str) -> InvalidRequest:
    which = f"the model {name!r} of --embedding-model is not" if name else "no such model is"
    return InvalidRequest(
        f"a vector store needs a model for embeddings, and {which} served here: {_HINT}"
    )


def _encode(
    encoder: TextEncoder, files: SentenceFiles, texts: Sequence[str], kind: TextKind
) -> list[EncodedText]:
    prompt = files.query_prompt if kind == "query" else files.document_prompt
    limit = TextLimit(encoder.max_tokens, cuts=True)
    encoded = [encoder.text(text, limit, field="query", prompt=prompt.text) for text in texts]
    return [replace(each, task=prompt.task) for each in encoded] if prompt.task else encoded
