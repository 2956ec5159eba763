"""Describes an operation of the API by a record, for its route and the OpenAPI document.

The file of each endpoint lists its own operations in `OPERATIONS`; `operations.py` joins the lists.
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
from ouzel.api.endpoint.model_choice import ModelChoice, asks_for_stream, choose_by_body
from ouzel.api.endpoint.on_demand import OnDemand
from ouzel.api.endpoint.services import Services
from ouzel.api.http.framing import SSE, Framing
from ouzel.lifecycle.models import ManagedModel
from ouzel.pooling import Task

StructType = type[msgspec.Struct]
Words = Literal["openai", "lmi", "anthropic", "ollama", "cohere", "tei", "sagemaker"]
Endpoint = ASGIApp | Callable[[Request], Awaitable[Response]]

VECTOR_TASKS = frozenset[Task]({"embed", "score"})
# prefixes of the same API: OpenAI's path, and the paths of OpenVINO Model Server
PREFIXES = ("/v1", "/v3", "/v3/v1")


@dataclass(frozen=True)
class QueryField:
    name: str
    schema: Mapping[str, object]
    description: str


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A method and path of the API. Exactly one of `endpoint`, `overall` and `changing` is set.

    `endpoint` makes an endpoint for each model; `choice` chooses the model of a request. `overall`
    makes one endpoint for all models, `changing` an endpoint that loads and unloads models. Several
    `bodies`, `answers` or `chunks` are alternatives.
    """

    method: Literal["get", "post", "delete", "websocket"]
    path: str
    summary: str = ""
    endpoint: Callable[[Services], Endpoint] | None = None
    overall: Callable[[Catalogue], Endpoint] | None = None
    changing: Callable[[ModelChanges], Endpoint] | None = None
    choice: ModelChoice = choose_by_body
    prefixes: tuple[str, ...] = ()  # prefixes that may replace /v1 in the path
    has_slashes: bool = False  # parameters of the path may contain slashes
    # With this profile the operation replaces the operation of the same path without a profile.
    profile: Literal["lmi", "ovms"] | None = None
    # With this profile the operation is missing: the other server refuses the method.
    missing_profile: Literal["ovms"] | None = None
    # With this header a request reaches this operation instead of the same path without a header.
    header: str | None = None
    is_documented: bool = True
    query: tuple[QueryField, ...] = ()
    bodies: tuple[StructType, ...] = ()
    form: Mapping[str, object] | None = None  # schema of a body that is a form with a file
    # the fields of a form with a file, whose endpoint reads it in memory; instead of `form`
    form_body: StructType | None = None
    answers: tuple[object, ...] = ()  # types of answers; empty for a text
    media_type: str = "text/plain"  # media type of an answer without types
    file_types: tuple[str, ...] = ()  # media types of an answer that is a file
    chunks: tuple[StructType, ...] = ()  # types of chunks, if the body asks for a stream
    wants_stream: Callable[[bytes], bool] = asks_for_stream  # reads in a body whether it does
    # tasks of models that do not generate for which this is a main endpoint
    own_tasks: frozenset[Task] = frozenset()
    has_page: bool = False  # answers browsers with HTML
    is_playground: bool = False  # removed by --no-playground
    words: Words = "openai"  # the API whose framing and errors are used
    is_refused: bool = False  # refuses every request
    # Answers 503 while the server takes no requests. Without an answer only the status counts.
    is_probe: bool = False
    is_scraped: bool = False  # collectors of metrics call it
    # answers a body for a model that is not in memory, by the model's name; None: it must be loaded
    answer_away: Callable[[OnDemand, str, bytes], object | None] | None = None
    # reads in a body how long the model stays in memory without requests
    apply_keep_alive: Callable[[ManagedModel, bytes], None] | None = None

    # framing of the answer's stream, if it has comments; None: SSE for OpenAI's streams
    event_framing: Framing | None = None

    @property
    def framing_with_comments(self) -> Framing | None:
        """Returns the framing of a stream that may wait; None if it cannot have comments."""
        return self.event_framing or (SSE if self.chunks and self.words == "openai" else None)

    @property
    def is_watching(self) -> bool:
        """Tells whether monitoring calls the operation periodically: health checks and metrics."""
        return self.is_probe or self.is_scraped

    @property
    def main_tasks(self) -> frozenset[Task]:
        """Returns the tasks of the models for which this is a main endpoint."""
        if self.own_tasks:
            return self.own_tasks
        generates = self.chunks and self.changing is None and "{" not in self.path
        return frozenset[Task]({"generate"} if generates else ())

    @property
    def paths(self) -> list[str]:
        """Returns all paths of its routes, in starlette's spelling."""
        path = self.path.replace("}", ":path}") if self.has_slashes else self.path
        if not self.prefixes:
            return [path]
        return [prefix + path.removeprefix("/v1") for prefix in self.prefixes]
