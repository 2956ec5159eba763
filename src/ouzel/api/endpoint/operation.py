"""An operation of the API is a record that becomes a route and a part of the OpenAPI document.

Every endpoint's file has its own as `OPERATIONS`; `operations.py` puts them together.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.endpoint.model_choice import ModelChoice, by_body
from ouzel.api.endpoint.services import Services
from ouzel.pooling import Task

StructType = type[msgspec.Struct]
Words = Literal["openai", "lmi", "anthropic", "ollama", "cohere", "tei", "sagemaker"]
Endpoint = ASGIApp | Callable[[Request], Awaitable[Response]]

VECTOR_TASKS = frozenset[Task]({"embed", "score"})
PREFIXES = (
    "/v1",
    "/v3",
    "/v3/v1",
)  # the same API: OpenAI's path, and those of OpenVINO Model Server


@dataclass(frozen=True)
class QueryField:
    name: str
    schema: Mapping[str, object]
    description: str


@dataclass(frozen=True, kw_only=True)
class Operation:
    """`endpoint` is made for each model, of which a request means one by `choice`; or else `overall`, for all of them,
    or `changing`, for who changes which there are.

    Several `bodies`, `answers` or `chunks` are alternatives.
    """

    method: Literal["get", "post", "delete", "websocket"]
    path: str
    summary: str = ""
    endpoint: Callable[[Services], Endpoint] | None = None
    overall: Callable[[Catalogue], Endpoint] | None = None
    changing: Callable[[ModelChanges], Endpoint] | None = None
    choice: ModelChoice = by_body
    prefixes: tuple[str, ...] = ()  # that also stand where the path has /v1
    has_slashes: bool = False  # the values of the path's parameters may
    # has it with that profile only, instead of the same path without
    profile: Literal["lmi", "ovms"] | None = None
    header: str | None = None  # whose sender has it, instead of the same path without
    is_documented: bool = True
    query: tuple[QueryField, ...] = ()
    bodies: tuple[StructType, ...] = ()
    answers: tuple[object, ...] = ()  # types; none: text
    media_type: str = "text/plain"  # of an answer without types
    chunks: tuple[StructType, ...] = ()  # of the stream that `stream` asks for
    vector_tasks: frozenset[Task] = (
        frozenset()
    )  # of models that write no text; it is one of their main endpoints
    has_page: bool = False  # for browsers, in HTML
    is_playground: bool = False  # is left out with --no-playground
    words: Words = "openai"  # of its framing and its errors
    is_refused: bool = False  # whatever is asked
    is_probe: bool = False  # 503 when requests are not taken; without an answer the status is all
    is_scraped: bool = False  # by who collects metrics

    @property
    def is_watching(self) -> bool:
        """Tells whether machines ask for it all the time, and nobody else."""
        return self.is_probe or self.is_scraped

    @property
    def main_tasks(self) -> frozenset[Task]:
        """Returns the tasks of the models for which this is one of the most important endpoints."""
        return (
            frozenset[Task]({"generate"})
            if self.chunks and "{" not in self.path
            else self.vector_tasks
        )

    @property
    def paths(self) -> list[str]:
        """Returns all paths of its routes, as starlette spells them."""
        path = self.path.replace("}", ":path}") if self.has_slashes else self.path
        if not self.prefixes:
            return [path]
        return [prefix + path.removeprefix("/v1") for prefix in self.prefixes]
