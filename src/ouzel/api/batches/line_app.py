"""Answers the lines of batches with the endpoints of this server, without HTTP.

A line passes the same endpoints as a request over HTTP, so every field works. It needs no API key:
the key that owns its batch was checked when the batch was made.
"""

import asyncio
import secrets
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import (
    asks_for_stream,
    check_task,
    read_background,
    read_model_name,
)
from ouzel.api.endpoint.on_demand import ModelNotLoaded
from ouzel.api.http.exchange import get_exchange, open_exchange
from ouzel.api.http.request_log import log_exchange
from ouzel.batches.line_app import LineAnswer
from ouzel.errors import EngineUnavailable, InvalidRequest
from ouzel.generation import EngineState, background
from ouzel.observability import request_id_in_scope
from ouzel.pooling import Task

_ASGI = {"version": "3.0", "spec_version": "2.4"}
_EMBEDDINGS = "/v1/embeddings"
_RETRY_AFTER_S = 2.0


class LineCheck:
    """Refuses fields that have no meaning in a batch."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = get_exchange(scope).body or b""
        if asks_for_stream(body):
            raise InvalidRequest("must be false in a batch, given true", field="stream")
        if read_background(body):
            raise InvalidRequest("must be false in a batch, given true", field="background")
        await self._app(scope, receive, send)


class CatalogueLineApp:
    """Implements `LineApp` with the routes of this server."""

    def __init__(self, app: ASGIApp, catalogue: Catalogue) -> None:
        """`app` has the routes, and answers errors."""
        self._app = app
        self._catalogue = catalogue

    async def ask(self, path: str, body: bytes, *, key_id: str | None) -> LineAnswer:
        request_id = secrets.token_hex(16)
        if self._disturbs_others(body):
            return LineAnswer(
                status=HTTPStatus.SERVICE_UNAVAILABLE,
                request_id=request_id,
                body=b"",
                retry_after_s=_RETRY_AFTER_S,
            )
        scope = _make_scope(path, body)
        exchange = open_exchange(scope, request_id)
        exchange.key_id, exchange.body, exchange.is_routine = key_id, body, True
        request_id_in_scope.set(request_id)  # each line runs in a context of its own
        collector = _Collector()
        with background():
            await self._app(scope, _wait_for_ever, collector.send)
        exchange.status = collector.status
        log_exchange(exchange, "POST", path)
        return LineAnswer(
            status=collector.status,
            request_id=request_id,
            body=b"".join(collector.pieces),
            retry_after_s=collector.retry_after_s,
        )

    def find_model(self, name: str, endpoint: str) -> str:
        try:
            services = self._catalogue.find(name)
        except ModelNotLoaded:
            return name
        except EngineUnavailable:  # it is being loaded
            return name
        task: Task = "embed" if endpoint == _EMBEDDINGS else "generate"
        return check_task(self._catalogue, services, task).model.names[0]

    def num_places(self, model: str) -> int:
        for services in self._catalogue:
            if model in services.model.names:
                engine = services.model.engine
                if engine.state is not EngineState.READY:
                    return 0
                num_running = engine.info.max_num_seqs * len(engine.members)
                # A few lines more are prepared before the engine needs them.
                return num_running + num_running // 4 + 2
        # One line is enough to load a model.
        return int(model in self._catalogue.away and not self._others_are_in_use())

    def _disturbs_others(self, body: bytes) -> bool:
        """Tells whether a line would load a model while requests use others."""
        if self._catalogue.on_demand is None:
            return False
        name = read_model_name(body)
        return name in self._catalogue.away and self._others_are_in_use()

    def _others_are_in_use(self) -> bool:
        on_demand = self._catalogue.on_demand
        return on_demand is not None and any(model.num_open for model in on_demand.residents.models)


class _Collector:
    """Collects the answer of an ASGI app."""

    def __init__(self) -> None:
        self.status = 0
        self.retry_after_s: float | None = None
        self.pieces: list[bytes] = []

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            for name, value in message.get("headers", ()):
                if name == b"retry-after":
                    self.retry_after_s = float(value)
        else:
            self.pieces.append(message.get("body", b""))


async def _wait_for_ever() -> Message:
    """Receives nothing: the body is in the exchange, and the client of a line does not leave."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError("nothing sets the future")


def _make_scope(path: str, body: bytes) -> Scope:
    return {
        "type": "http",
        "asgi": _ASGI,
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"host", b"localhost"),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ],
        "client": None,
        "server": None,
        "state": {},
    }
