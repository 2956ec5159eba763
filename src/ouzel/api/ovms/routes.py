"""OVMS's paths."""

from collections.abc import Callable, Mapping

from starlette.routing import Route
from starlette.types import ASGIApp

from ouzel.api.http.dialect import Dialect
from ouzel.api.http.faults import ErrorStyle
from ouzel.api.ovms.chat import OvmsChat
from ouzel.api.ovms.completions import OvmsCompletions
from ouzel.api.ovms.errors import ovms_models_style, ovms_style
from ouzel.api.ovms.status import Status
from ouzel.api.paths import PREFIXES
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.generation import ServedModel


def ovms_routes(
    model: ServedModel, limits: LimitsConfig, config: ServerConfig, generating: Callable[[Dialect], ASGIApp]
) -> list[Route]:
    """With OVMS's profile also the endpoints that generate: they go before those of OpenAI."""
    status = Status(model)
    routes = [
        Route("/v2/health/live", status.live),
        Route("/v2/health/ready", status.ready),
        Route("/v2/models/{name:path}/ready", status.model_ready),
        Route("/v1/config", status.config),
    ]
    if config.profile == "ovms":
        chat, completions = generating(OvmsChat(model, limits)), generating(OvmsCompletions(model, limits))
        for prefix in PREFIXES:
            routes.append(Route(f"{prefix}/chat/completions", chat, methods=["POST"]))
            routes.append(Route(f"{prefix}/completions", completions, methods=["POST"]))
    return routes


def ovms_error_styles(config: ServerConfig) -> Mapping[str, ErrorStyle]:
    """By the beginning of the path."""
    if config.profile != "ovms":
        return {}
    return dict.fromkeys((f"{prefix}/models/" for prefix in PREFIXES), ovms_models_style) | {"": ovms_style}
