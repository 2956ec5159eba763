"""The paths of the Responses API."""

from collections.abc import Callable

import msgspec
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp

from ouzel.api.http.body_endpoint import AnswerBody
from ouzel.api.http.framing import SSE
from ouzel.api.paths import PREFIXES
from ouzel.api.responses.compact import CompactResponse
from ouzel.api.responses.count import CountInputTokens
from ouzel.api.responses.create import CreateResponse
from ouzel.api.responses.retrieve import RetrieveResponse
from ouzel.api.responses.socket.endpoint import ResponsesSocket
from ouzel.api.responses.stored import KeptResponses
from ouzel.config import LimitsConfig
from ouzel.responses.preparer import Preparer
from ouzel.responses.runs import Runs


def responses_routes(
    runs: Runs,
    preparer: Preparer,
    limits: LimitsConfig,
    compactor: CompactResponse,
    body_endpoint: Callable[[AnswerBody], ASGIApp],
    *,
    sends_done: bool,
) -> list[BaseRoute]:
    """`sends_done`: streams end with `data: [DONE]`."""
    framing = SSE if sends_done else msgspec.structs.replace(SSE, end=b"")
    create = CreateResponse(runs, preparer, limits, framing)
    kept = KeptResponses(runs)
    retrieve = RetrieveResponse(kept, runs, framing)
    count, compact = body_endpoint(CountInputTokens(preparer).count), body_endpoint(compactor.compact)
    socket = ResponsesSocket(runs, preparer, limits)
    routes: list[BaseRoute] = []
    for prefix in PREFIXES:
        one = f"{prefix}/responses/{{response_id}}"
        routes += [
            Route(f"{prefix}/responses", create, methods=["POST"]),
            WebSocketRoute(f"{prefix}/responses", socket),
            Route(f"{prefix}/responses/input_tokens", count, methods=["POST"]),
            Route(f"{prefix}/responses/compact", compact, methods=["POST"]),
            Route(one, retrieve, methods=["GET"]),
            Route(one, kept.delete, methods=["DELETE"]),
            Route(f"{one}/cancel", kept.cancel, methods=["POST"]),
            Route(f"{one}/input_items", kept.input_items, methods=["GET"]),
        ]
    return routes
