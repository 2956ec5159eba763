"""Endpoints are made of the served model, its store, and what runs for all of them."""

from dataclasses import dataclass

from starlette.types import ASGIApp

from ouzel.api.http.body_endpoint import AnswerBody, BodyEndpoint
from ouzel.api.http.dialect import Dialect
from ouzel.api.http.door import Door
from ouzel.api.http.generating_endpoint import GeneratingEndpoint
from ouzel.api.http.streams import Streams
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.responses.compactor import Compactor
from ouzel.responses.preparer import Preparer
from ouzel.responses.runs import Runs
from ouzel.responses.summariser import Summariser
from ouzel.store.base import Store
from ouzel.worker_threads import PreparationThreads, WorkerThreads

_NUM_TOKENIZING = 1  # others have the processors too
_MAX_WAITING_TEXTS = 16


@dataclass(frozen=True, slots=True)
class Services:
    """One application has one; `store` is None where nothing is kept."""

    model: ServedModel
    metrics: Metrics
    limits: LimitsConfig
    config: ServerConfig
    store: Store | None
    door: Door
    streams: Streams
    summariser: Summariser
    preparer: Preparer
    runs: Runs
    threads: PreparationThreads
    tokenizing: WorkerThreads

    @classmethod
    def of(cls, model: ServedModel, limits: LimitsConfig, config: ServerConfig, store: Store | None) -> "Services":
        metrics = Metrics(model.names[0])
        door = Door(model, metrics, limits)
        threads = PreparationThreads()
        summariser = Summariser(model, limits, threads, metrics)
        preparer = Preparer(model, limits, store, threads, Compactor(model, threads, summariser))
        return cls(
            model=model,
            metrics=metrics,
            limits=limits,
            config=config,
            store=store,
            door=door,
            streams=Streams(limits.stream_keepalive_s),
            summariser=summariser,
            preparer=preparer,
            runs=Runs(model, metrics, preparer, store),
            threads=threads,
            tokenizing=WorkerThreads("texts to tokenize", _NUM_TOKENIZING, max_waiting=_MAX_WAITING_TEXTS),
        )

    async def close(self) -> None:
        await self.runs.close()
        self.threads.close()
        self.tokenizing.close()

    def generating(self, dialect: Dialect) -> ASGIApp:
        return GeneratingEndpoint(
            dialect, self.model, self.metrics, self.door, streams=self.streams, threads=self.threads
        )

    def taking_body(self, answer: AnswerBody) -> ASGIApp:
        return BodyEndpoint(answer, self.door)
