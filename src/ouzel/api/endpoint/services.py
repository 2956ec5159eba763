"""The services that endpoints use: one record for each model, one for all models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.types import ASGIApp

from ouzel.api.endpoint.chat_archive import ChatArchive
from ouzel.api.endpoint.speech_services import SpeechServices
from ouzel.api.endpoint.uploaded_files import UploadedFiles
from ouzel.api.http.body_endpoint import AnswerBody, BodyEndpoint
from ouzel.api.http.body_reader import BodyReader
from ouzel.api.http.form_body import FormBodies
from ouzel.api.http.generating_endpoint import GeneratingEndpoint
from ouzel.api.http.hosted_chat import DialectOfKey, HostingDialect
from ouzel.api.http.open_exchanges import OpenExchanges, OpenRequest
from ouzel.api.http.open_sockets import OpenSockets
from ouzel.api.http.request_admission import RequestAdmission
from ouzel.api.http.streams import Streams
from ouzel.config import LimitsConfig, MediaConfig, ServerConfig
from ouzel.generation import ServedModel
from ouzel.hosted_tools.code_interpreter.containers import Containers
from ouzel.hosted_tools.file_search.search import FileSearch
from ouzel.observability import HttpResponses, Metrics
from ouzel.responses.compaction.compactor import Compactor
from ouzel.responses.compaction.summariser import Summariser
from ouzel.responses.dialect import ResponseDialect
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.preparer import Preparer
from ouzel.responses.runs import Runs
from ouzel.responses.templates.library import PromptLibrary
from ouzel.store.base import Store
from ouzel.worker_threads import PreparationThreads, WorkerThreads

_NUM_TOKENIZING = 1  # one thread, to leave the processors to other work
_MAX_WAITING_TEXTS = 16
_NUM_ENCODING = 2  # threads


@dataclass(frozen=True, slots=True, eq=False)
class SharedServices:
    """The services that all models of an application share.

    Without a store, `store` is None.
    """

    limits: LimitsConfig
    config: ServerConfig
    store: Store | None
    bodies: BodyReader
    forms: FormBodies  # forms with a sound file
    streams: Streams
    exchanges: OpenExchanges
    sockets: OpenSockets
    runs: Runs
    chats: ChatArchive
    threads: PreparationThreads
    tokenizing: WorkerThreads
    encoding: WorkerThreads  # encodes speech
    responses: HttpResponses
    dialect: ResponseDialect  # dialect of the Responses API
    hosted: HostedKinds  # tools that the server runs
    prompts: PromptLibrary  # templates of responses
    max_file_bytes: int  # limit of an uploaded file
    containers: Containers | None  # they run the code of models; None if the sandbox is off
    file_search: FileSearch | None  # None without a store
    files: UploadedFiles  # the files that messages name
    media: MediaConfig  # limits of pictures, videos and PDFs
    speech: SpeechServices | None  # None: no speech or voice model is served

    @classmethod
    def of(
        cls,
        limits: LimitsConfig,
        config: ServerConfig,
        store: Store | None,
        preparers: Callable[[], Sequence[Preparer]],
        *,
        dialect: ResponseDialect,
        hosted: HostedKinds,
        prompts: PromptLibrary,
        max_file_bytes: int,
        containers: Containers | None,
        file_search: FileSearch | None,
        media: MediaConfig,
        speech: SpeechServices | None,
    ) -> "SharedServices":
        bodies = BodyReader(limits)
        return cls(
            limits=limits,
            config=config,
            store=store,
            bodies=bodies,
            forms=_make_forms(bodies, limits, speech),
            streams=Streams(limits.stream_keepalive_s),
            exchanges=OpenExchanges(),
            sockets=OpenSockets(limits.max_websockets),
            runs=Runs(preparers, store),
            chats=ChatArchive(store),
            threads=PreparationThreads(),
            tokenizing=WorkerThreads(
                "texts to tokenize", _NUM_TOKENIZING, max_waiting=_MAX_WAITING_TEXTS
            ),
            encoding=WorkerThreads("sounds to encode", _NUM_ENCODING),
            responses=HttpResponses(),
            dialect=dialect,
            hosted=hosted,
            prompts=prompts,
            max_file_bytes=max_file_bytes,
            containers=containers,
            file_search=file_search,
            files=UploadedFiles(store, media),
            media=media,
            speech=speech,
        )

    def open_requests(self) -> list[OpenRequest]:
        """Returns the requests in progress, and the responses that run in the background."""
        requests = self.exchanges.requests()
        for run in self.runs.in_background:
            generation = run.generation
            num_tokens = generation.usage().completion_tokens
            requests.append(
                OpenRequest(run.id, "in the background", generation.request.arrival_s, num_tokens)
            )
        return requests

    async def close(self) -> None:
        await self.runs.close()
        await self.hosted.close()
        await self.chats.settle()
        self.threads.close()
        self.tokenizing.close()
        self.encoding.close()


def _make_forms(
    bodies: BodyReader, limits: LimitsConfig, speech: SpeechServices | None
) -> FormBodies:
    """Makes the reader of forms with a sound file, which must fit into the budget of bodies."""
    max_file_bytes = limits.max_body_bytes if speech is None else speech.max_file_bytes
    fits = max_file_bytes <= limits.most_body_bytes
    return FormBodies(
        bodies,
        max_file_bytes=max_file_bytes if fits else limits.most_body_bytes,
        limit="max_audio_file_bytes" if fits else "max_body_bytes_total",
        body_timeout_s=limits.body_timeout_s,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Services:
    """The services of one served model."""

    model: ServedModel
    shared: SharedServices
    metrics: Metrics
    admission: RequestAdmission
    summariser: Summariser
    preparer: Preparer

    @classmethod
    def of(
        cls, model: ServedModel, shared: SharedServices, metrics: Metrics | None = None
    ) -> "Services":
        """Makes the services of a model; `metrics` go on counting for a model that was reloaded."""
        metrics = metrics or Metrics(model.names[0], len(model.engine.members))
        summariser = Summariser(model, shared.limits, shared.threads, metrics)
        compactor = Compactor(model, shared.threads, summariser)
        return cls(
            model=model,
            shared=shared,
            metrics=metrics,
            admission=RequestAdmission(model, metrics, shared.bodies),
            summariser=summariser,
            preparer=Preparer(
                model,
                shared.limits,
                shared.store,
                shared.threads,
                compactor=compactor,
                metrics=metrics,
                dialect=shared.dialect,
                hosted=shared.hosted,
                prompts=shared.prompts,
                files=shared.files,
            ),
        )

    @property
    def limits(self) -> LimitsConfig:
        return self.shared.limits

    @property
    def config(self) -> ServerConfig:
        return self.shared.config

    @property
    def store(self) -> Store | None:
        return self.shared.store

    @property
    def streams(self) -> Streams:
        return self.shared.streams

    @property
    def runs(self) -> Runs:
        return self.shared.runs

    @property
    def chats(self) -> ChatArchive:
        return self.shared.chats

    @property
    def threads(self) -> PreparationThreads:
        return self.shared.threads

    @property
    def tokenizing(self) -> WorkerThreads:
        return self.shared.tokenizing

    def make_generating(self, dialect: HostingDialect) -> ASGIApp:
        return self.make_generating_by_key(lambda _: dialect)

    def make_generating_by_key(
        self, dialect_of_key: DialectOfKey, num_held_bytes: Callable[[bytes], int] | None = None
    ) -> ASGIApp:
        return GeneratingEndpoint(
            dialect_of_key,
            self.model,
            self.metrics,
            self.admission,
            streams=self.streams,
            threads=self.threads,
            num_held_bytes=num_held_bytes,
        )

    def make_body_endpoint(self, answer: AnswerBody) -> ASGIApp:
        return BodyEndpoint(answer, self.admission)
