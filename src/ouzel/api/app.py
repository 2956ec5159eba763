"""Builds the HTTP application: its layers around the routes, the innermost first."""

import asyncio
from functools import partial

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Scope

from ouzel.api.anthropic.errors import VERSION_HEADER, anthropic_error_styles, anthropic_style
from ouzel.api.batches.line_app import CatalogueLineApp, LineCheck
from ouzel.api.batches.result_files import StoredBatchFiles
from ouzel.api.cohere.errors import cohere_error_styles
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.endpoint.uploaded_files import FileAccess
from ouzel.api.http.error_answers import ErrorAnswers
from ouzel.api.http.exchange import get_method
from ouzel.api.http.host_check import HostCheck, allowed_hosts
from ouzel.api.http.key_checks import OPEN_PATHS, AdminKeyCheck, ApiKeyCheck
from ouzel.api.http.lifespan import Lifespan
from ouzel.api.http.method_router import MethodRouter
from ouzel.api.http.origin_check import OriginCheck
from ouzel.api.http.paths import PathCorrection, UnknownPath
from ouzel.api.http.record_types import prepare_record_types
from ouzel.api.http.request_recorder import (
    DROPPED_FORMAT_HEADER,
    WARNINGS_HEADER,
    BeginSpan,
    RequestRecorder,
)
from ouzel.api.http.server.upgrades import Upgrades
from ouzel.api.lmi.errors import lmi_error_styles
from ouzel.api.ollama import delete as ollama_delete
from ouzel.api.ollama import pull as ollama_pull
from ouzel.api.ollama.errors import ollama_error_styles
from ouzel.api.openai import model_loading, model_pulls
from ouzel.api.operations import OPERATIONS, build_paths, build_routes, list_main_paths
from ouzel.api.ovms import status as ovms_status
from ouzel.api.ovms.errors import ovms_error_styles
from ouzel.api.ovms.responses import response_dialect
from ouzel.api.site import playground
from ouzel.api.site.own_process import OwnProcess
from ouzel.api.tei.errors import tei_error_styles
from ouzel.batches.worker import BatchWorker
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.generation import ServedModel, background
from ouzel.hosted_tools.file_search.extraction import Extractor
from ouzel.hosted_tools.file_search.indexer import Indexer
from ouzel.hosted_tools.file_search.indexing import FileIndexing
from ouzel.hosted_tools.file_search.patient_embedder import PatientEmbedder
from ouzel.hosted_tools.file_search.search import FileSearch
from ouzel.responses.runs import Runs
from ouzel.store.base import Store


def create_app(
    model: ServedModel, limits: LimitsConfig, server: ServerConfig, store: Store | None = None
) -> Lifespan:
    """Builds an application with one model.

    `server` sets keys, profile and origins; the caller listens. Responses are stored in `store`;
    without a store they are lost after the answer.
    """
    return build_app(
        ModelChanges(Catalogue([model], limits, server, store, response_dialect(server.profile)))
    )


def build_app(changes: ModelChanges, begin_span: BeginSpan | None = None) -> Lifespan:
    """Builds an application for the catalogue of `changes`.

    Requests are traced if `begin_span` is given.
    """
    prepare_record_types()  # requests are decoded in several threads
    catalogue = changes.catalogue
    shared = catalogue.shared
    server = shared.config
    paths = build_paths(OPERATIONS, server)
    routes = build_routes(OPERATIONS, catalogue, changes)
    unknown = UnknownPath(paths, partial(list_main_paths, OPERATIONS, catalogue))
    router = MethodRouter(routes, default=unknown)
    endpoints = FileAccess(router, shared.files)
    app: ASGIApp = OriginCheck(endpoints, server.allowed_origins)
    if server.api_key:
        app = ApiKeyCheck(
            app,
            server.api_key,
            OPEN_PATHS | playground.PATHS | ({"/metrics"} if server.open_metrics else set()),
            own_key_paths=_admin_paths(server),
            is_admitted=partial(_is_admitted, AdminKeyCheck(server.admin_api_key)),
        )
    app = HostCheck(app, allowed_hosts(server))
    profile = server.profile
    styles = {
        **anthropic_error_styles(),
        **ollama_error_styles(),
        **lmi_error_styles(profile),
        **cohere_error_styles(),
        **tei_error_styles(),
        **ovms_error_styles(profile),
    }
    app = ErrorAnswers(app, styles, {VERSION_HEADER.encode(): anthropic_style})
    if server.allowed_origins:
        app = _cors(app, server)
    app = PathCorrection(app, paths)
    if server.playground:
        app = OwnProcess(app)
    worker = indexer = None
    if shared.store is not None:
        line_app = CatalogueLineApp(ErrorAnswers(LineCheck(endpoints), styles), catalogue)
        worker = BatchWorker(line_app, StoredBatchFiles(shared.store), shared.store)
        indexer = _make_indexer(shared.store, shared.file_search)
    return Lifespan(
        Upgrades(
            RequestRecorder(
                app,
                paths,
                shared.responses.count,
                begin_span,
                shared.exchanges,
            )
        ),
        watch=partial(_watch, shared.runs, worker, indexer),
        drain=partial(_drain, changes, worker, indexer),
        close=shared.close,
        drain_timeout_s=shared.limits.drain_timeout_s,
        list_requests=shared.open_requests,
    )


def _make_indexer(store: Store, search: FileSearch | None) -> Indexer:
    assert search is not None, "a server with a store has a file search"
    embedder = PatientEmbedder(search.embedder)
    indexing = FileIndexing(store.vector_stores, store.files, embedder, Extractor())
    return Indexer(store, indexing, has_new_files=search.has_new_files)


async def _watch(runs: Runs, worker: BatchWorker | None, indexer: Indexer | None) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(runs.watch())
        if worker is not None:
            group.create_task(worker.watch())
        if indexer is not None:
            with background():
                group.create_task(indexer.watch())


async def _drain(
    changes: ModelChanges, worker: BatchWorker | None, indexer: Indexer | None, timeout_s: float
) -> None:
    """Stops indexing and the lines of batches at once, then waits for other requests."""
    if indexer is not None:
        await indexer.drain()
    if worker is not None:
        await worker.drain()
    await changes.drain(timeout_s)


def _admin_paths(server: ServerConfig) -> frozenset[str]:
    """Returns the paths that check the admin key themselves."""
    reload = {ovms_status.RELOAD_PATH} if ovms_status.needs_admin_key(server) else set()
    return model_loading.PATHS | reload


def _is_admitted(admin_key: AdminKeyCheck, scope: Scope) -> bool:
    """Tells whether a request to pull or delete a model has the admin key in place of an API key.

    Clients with an API key may send the same requests, and get other answers.
    """
    path = scope["path"]
    is_change = path in (model_pulls.PATH, ollama_pull.PATH, ollama_delete.PATH) or (
        get_method(scope) == "DELETE" and path.startswith(model_pulls.MODELS_PATH)
    )
    return is_change and admin_key.accepts(scope)


def build_probe_app(catalogue: Catalogue) -> ASGIApp:
    """Builds an application with only probes and metrics, open to everyone.

    It needs no lifespan.
    """
    watching = [operation for operation in OPERATIONS if operation.is_watching]
    shared = catalogue.shared
    paths = build_paths(watching, shared.config)
    router = MethodRouter(build_routes(watching, catalogue), default=UnknownPath(paths))
    return RequestRecorder(ErrorAnswers(router, {}), paths, shared.responses.count)


def _cors(app: ASGIApp, server: ServerConfig) -> ASGIApp:
    """Adds CORS headers around error answers and key checks.

    So pages can read errors too, and preflights, which carry no key, are answered.
    """
    return CORSMiddleware(
        app,
        allow_origins=server.allowed_origins,
        allow_methods=server.allowed_methods,
        allow_headers=server.allowed_headers,
        allow_credentials=server.allow_credentials,
        expose_headers=(
            "x-request-id",
            "request-id",
            "retry-after",
            WARNINGS_HEADER,
            DROPPED_FORMAT_HEADER,
        ),
        max_age=600,  # seconds
    )
