"""LMI's paths."""

from collections.abc import Callable, Mapping

from starlette.routing import Route
from starlette.types import ASGIApp

from ouzel.api.http.dialect import Dialect
from ouzel.api.http.faults import ErrorStyle
from ouzel.api.lmi.errors import lmi_style
from ouzel.api.lmi.invocations import Invocations
from ouzel.api.lmi.ping import Ping
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.generation import ServedModel

_CHAT_PATH = "/v1/chat/completions"
_INVOCATION_PATHS = (
    "/invocations",
    "/predictions/{model_name}",
    "/predictions/{model_name}/{model_version}",
    "/models/{model_name:path}/invoke",
)
_PREFIXES = ("/invocations", "/predictions", "/models/", "/ping")


def lmi_routes(
    model: ServedModel, limits: LimitsConfig, config: ServerConfig, generating: Callable[[Dialect], ASGIApp]
) -> list[Route]:
    """With LMI's profile also that of chat completions: they go before those of OpenAI."""
    invocations = Invocations(model, limits, config, generating)
    paths = (*_INVOCATION_PATHS, _CHAT_PATH) if config.profile == "lmi" else _INVOCATION_PATHS
    return [Route("/ping", Ping(model).ping), *(Route(path, invocations, methods=["POST"]) for path in paths)]


def lmi_error_styles(config: ServerConfig) -> Mapping[str, ErrorStyle]:
    """By the beginning of the path."""
    return dict.fromkeys((*_PREFIXES, _CHAT_PATH) if config.profile == "lmi" else _PREFIXES, lmi_style)
