"""GET /health and /metrics: for the machines that watch."""

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response

from ouzel.errors import EngineUnavailable
from ouzel.generation import EngineState, ServedModel
from ouzel.observability import EngineReading, Metrics


class Health(msgspec.Struct):
    status: str
    reason: str | msgspec.UnsetType = msgspec.UNSET


class Watch:
    def __init__(self, model: ServedModel, metrics: Metrics) -> None:
        self._engine = model.engine
        self._metrics = metrics

    async def health(self, request: Request) -> Response:
        """200 while requests are taken, else 503 with the engine's state and its reason."""
        if self._engine.state is EngineState.READY:
            return Response(msgspec.json.encode(Health("ok")), media_type="application/json")
        body = msgspec.json.encode(Health(self._engine.state.value, self._engine.reason))
        return Response(body, status_code=503, media_type="application/json")

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.exposition(self._reading()), media_type=CONTENT_TYPE_LATEST)

    def _reading(self) -> EngineReading:
        try:
            block_size = self._engine.info.block_size
        except EngineUnavailable:
            block_size = None
        return EngineReading(self._engine.stats(), self._engine.num_restarts, block_size)
