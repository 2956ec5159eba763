"""`create_app` puts the layers of the HTTP application around its routes, the innermost first."""

from functools import partial

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from ouzel.api.anthropic.errors import VERSION_HEADER, anthropic_error_styles, anthropic_style
from ouzel.api.cohere.errors import cohere_error_styles
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.http.edge import DROPPED_FORMAT_HEADER, WARNINGS_HEADER, BeginSpan, RequestRecorder
from ouzel.api.http.error_answers import ErrorAnswers
from ouzel.api.http.guard import OPEN_PATHS, ApiKeyCheck
from ouzel.api.http.hosts import HostCheck, allowed_hosts
from ouzel.api.http.lifespan import Lifespan
from ouzel.api.http.method_router import MethodRouter
from ouzel.api.http.origins import OriginCheck
from ouzel.api.http.paths import PathCorrection, UnknownPath
from ouzel.api.http.server.upgrades import Upgrades
from ouzel.api.lmi.errors import lmi_error_styles
from ouzel.api.ollama.errors import ollama_error_styles
from ouzel.api.openai import model_loading
from ouzel.api.operations import OPERATIONS, main_paths_of, paths_of, routes_of
from ouzel.api.ovms import status as ovms_status
from ouzel.api.ovms.errors import ovms_error_styles
from ouzel.api.ovms.responses import response_dialect
from ouzel.api.site import playground
from ouzel.api.tei.errors import tei_error_styles
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.generation import ServedModel
from ouzel.store.base import Store


def create_app(
    model: ServedModel, limits: LimitsConfig, server: ServerConfig, store: Store | None = None
) -> Lifespan:
    """`server` says who may ask and in which dialect; where to listen is the caller's matter.

    `store` keeps responses; without one they are gone once they are answered.
    """
    return app_of(
        ModelChanges(Catalogue([model], limits, server, store, response_dialect(server.profile)))
    )


def app_of(changes: ModelChanges, begin_span: BeginSpan | None = None) -> Lifespan:
    """Requests are traced by the span that `begin_span` makes, if there is one."""
    catalogue = changes.catalogue
    shared = catalogue.shared
    server = shared.config
    paths = paths_of(OPERATIONS, server)
    routes = routes_of(OPERATIONS, catalogue, changes)
    unknown = UnknownPath(paths, partial(main_paths_of, OPERATIONS, catalogue))
    app: ASGIApp = MethodRouter(routes, default=unknown)
    app = OriginCheck(app, server.allowed_origins)
    if server.api_key:
        app = ApiKeyCheck(
            app,
            server.api_key,
            OPEN_PATHS | playground.PATHS | ({"/metrics"} if server.open_metrics else set()),
            own_key_paths=_admin_paths(server),
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
    runs = shared.runs
    return Lifespan(
        Upgrades(
            RequestRecorder(
                PathCorrection(app, paths),
                paths,
                shared.responses.count,
                begin_span,
                shared.exchanges,
            )
        ),
        watch=runs.watch,
        drain=changes.drain,
        close=shared.close,
        drain_timeout_s=shared.limits.drain_timeout_s,
        list_requests=shared.open_requests,
    )


def _admin_paths(server: ServerConfig) -> frozenset[str]:
    """Returns those that have a key of their own."""
    reload = {ovms_status.RELOAD_PATH} if ovms_status.needs_admin_key(server) else set()
    return model_loading.PATHS | reload


def watching_app_of(catalogue: Catalogue) -> ASGIApp:
    """Returns an app of the probes and metrics alone, open to all who reach it; it needs no lifespan."""
    watching = [operation for operation in OPERATIONS if operation.is_watching]
    shared = catalogue.shared
    paths = paths_of(watching, shared.config)
    router = MethodRouter(routes_of(watching, catalogue), default=UnknownPath(paths))
    return RequestRecorder(ErrorAnswers(router, {}), paths, shared.responses.count)


def _cors(app: ASGIApp, server: ServerConfig) -> ASGIApp:
    """Puts CORS around the answers to errors, so that pages read those too, and the guard: preflights carry no key."""
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
