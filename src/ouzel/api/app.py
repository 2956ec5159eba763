"""The HTTP application: which path is which endpoint."""

import ssl
from functools import partial
from http import HTTPStatus

import uvicorn
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ouzel.api.conversations.routes import conversation_routes
from ouzel.api.document.openapi import OpenApi
from ouzel.api.http.body_endpoint import BodyEndpoint, computed
from ouzel.api.http.dialect import Dialect
from ouzel.api.http.edge import Edge
from ouzel.api.http.error_answers import ErrorAnswers
from ouzel.api.http.generating_endpoint import GeneratingEndpoint
from ouzel.api.http.guard import Guard
from ouzel.api.http.http_protocol import http_protocol
from ouzel.api.http.lifespan import Lifespan
from ouzel.api.http.method_router import MethodRouter
from ouzel.api.http.origins import OwnPages
from ouzel.api.http.upgrades import Upgrades
from ouzel.api.lmi.routes import lmi_error_styles, lmi_routes
from ouzel.api.openai.chat import ChatCompletions
from ouzel.api.openai.completions import Completions
from ouzel.api.openai.health import Watch
from ouzel.api.openai.models import Models
from ouzel.api.openai.tokenize import Tokenizing
from ouzel.api.ovms.routes import ovms_error_styles, ovms_routes
from ouzel.api.paths import PREFIXES
from ouzel.api.responses.compact import CompactResponse
from ouzel.api.responses.routes import responses_routes
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.responses.preparer import Preparer
from ouzel.responses.runs import Runs
from ouzel.responses.summariser import Summariser
from ouzel.store.base import Store

_PING_EVERY_S = 20.0


def create_app(model: ServedModel, limits: LimitsConfig, server: ServerConfig, store: Store | None = None) -> ASGIApp:
    """`server` says who may ask and in which dialect; where to listen is `server_config`'s.

    `store` keeps responses; without one they are gone once they are answered.
    """
    metrics = Metrics(model.names[0])
    preparer = Preparer(model, limits, store)
    runs = Runs(model, metrics, preparer, store)
    compactor = CompactResponse(Summariser(preparer, model, metrics), model, store)
    body_endpoint = partial(BodyEndpoint, model=model, metrics=metrics, limits=limits)
    app: ASGIApp = MethodRouter(
        [
            *api_routes(model, limits, server, metrics),
            *responses_routes(runs, preparer, limits, compactor, body_endpoint, sends_done=server.responses_done),
            *conversation_routes(store, body_endpoint),
        ],
        redirect_slashes=False,
        default=_unknown_url,
    )
    app = OwnPages(app, server.allowed_origins)
    if server.api_key:
        app = Guard(app, server.api_key)
    app = ErrorAnswers(app, {**lmi_error_styles(server), **ovms_error_styles(server)})
    if server.allowed_origins:
        app = _cors(app, server)
    return Lifespan(Upgrades(Edge(app)), runs.watch, runs.close)


def api_routes(model: ServedModel, limits: LimitsConfig, server: ServerConfig, metrics: Metrics) -> list[Route]:
    models = Models(model)
    openapi = OpenApi()
    watch = Watch(model, metrics)

    def generating(dialect: Dialect) -> ASGIApp:
        return GeneratingEndpoint(
            dialect,
            model,
            metrics,
            max_body_bytes=limits.max_body_bytes,
            body_timeout_s=limits.body_timeout_s,
        )

    chat, completions = generating(ChatCompletions(model, limits)), generating(Completions(model, limits))
    routes = [Route("/health", watch.health), Route("/metrics", watch.metrics)]
    routes.append(Route("/openapi.json", openapi.document))
    routes += lmi_routes(model, limits, server, generating)
    routes += ovms_routes(model, limits, server, generating)
    tokenizing = Tokenizing(model)
    tokenize = BodyEndpoint(computed(tokenizing.tokenize), model, metrics, limits)
    detokenize = BodyEndpoint(computed(tokenizing.detokenize), model, metrics, limits)
    for prefix in ("", *PREFIXES):  # vLLM has these two at the root
        routes.append(Route(f"{prefix}/tokenize", tokenize, methods=["POST"]))
        routes.append(Route(f"{prefix}/detokenize", detokenize, methods=["POST"]))
    for prefix in PREFIXES:
        routes += [
            Route(f"{prefix}/chat/completions", chat, methods=["POST"]),
            Route(f"{prefix}/completions", completions, methods=["POST"]),
            Route(f"{prefix}/openapi.json", openapi.document),
            Route(f"{prefix}/models", models.list),
            Route(f"{prefix}/models/{{name:path}}", models.retrieve),
        ]
    return routes


def _cors(app: ASGIApp, server: ServerConfig) -> ASGIApp:
    """Around the answers to errors, so that pages can read those too, and the guard, for preflights carry no key."""
    return CORSMiddleware(
        app,
        allow_origins=server.allowed_origins,
        allow_methods=server.allowed_methods,
        allow_headers=server.allowed_headers,
        allow_credentials=server.allow_credentials,
        expose_headers=("x-request-id", "retry-after"),
        max_age=600,  # seconds
    )


async def _unknown_url(scope: Scope, receive: Receive, send: Send) -> None:
    raise HTTPException(HTTPStatus.NOT_FOUND)


def server_config(app: ASGIApp, limits: LimitsConfig, tls: ssl.SSLContext | None = None) -> uvicorn.Config:
    """uvicorn as Ouzel runs it on sockets it is given: its fast parts, our own log line."""
    return uvicorn.Config(
        app,
        loop="auto",  # uvloop where it is installed
        http=http_protocol(limits.write_timeout_s),
        ws="ouzel.api.http.socket_protocol:SocketProtocol",  # by name: only a server that starts imports it
        ws_max_size=limits.max_body_bytes,
        ws_ping_interval=min(_PING_EVERY_S, limits.write_timeout_s),
        ws_ping_timeout=limits.write_timeout_s,
        ws_per_message_deflate=False,  # costs more time than it saves on messages of a few hundred bytes
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        ssl_context_factory=None if tls is None else lambda *_: tls,
        timeout_keep_alive=60,  # longer than clients keep idle connections, so that they close them and not we
        timeout_graceful_shutdown=2,  # seconds; requests have been drained before
    )
