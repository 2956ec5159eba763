"""GET /health and /metrics are for the machines that watch."""

from dataclasses import replace
from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.send import json_response
from ouzel.generation import EngineClient, EngineState, ServedModel
from ouzel.observability import EngineReading, Metrics, exposition
from ouzel.observability.series import CONTENT_TYPE


class EngineHealth(msgspec.Struct):
    status: str
    reason: str


class Health(msgspec.Struct):
    status: str
    reason: str | msgspec.UnsetType = msgspec.UNSET
    engines: list[EngineHealth] | msgspec.UnsetType = msgspec.UNSET  # of a pool, each


class Watch:
    def __init__(self, model: ServedModel, metrics: Metrics) -> None:
        self._engines = model.engine
        self._metrics = metrics

    async def health(self, request: Request) -> Response:
        """Answers 200 while requests are taken, else 503 with the engine's state and its reason."""
        state, members = self._engines.state, self._engines.members
        each = [EngineHealth(engine.state.value, engine.reason) for engine in members]
        engines = each if len(members) > 1 else msgspec.UNSET
        if state is EngineState.READY:
            return json_response(Health("ok", engines=engines))
        health = Health(state.value, self._engines.reason, engines)
        return json_response(health, HTTPStatus.SERVICE_UNAVAILABLE)

    async def metrics(self, request: Request) -> Response:
        readings = [_reading(engine) for engine in self._engines.members]
        return Response(exposition([(self._metrics, readings)]), media_type=CONTENT_TYPE)


def _reading(engine: EngineClient) -> EngineReading:
    info, stats = engine.info, engine.stats()
    without_stats = EngineReading(
        num_restarts=engine.num_restarts,
        step_age_s=engine.step_age_s,
        block_size=info.block_size,
        num_blocks=info.num_blocks,
        num_state_slots=info.num_state_slots,
    )
    if stats is None:
        return without_stats
    return replace(
        without_stats,
        num_blocks=stats.num_blocks,
        num_running=stats.num_running,
        num_waiting=stats.num_waiting,
        num_used_blocks=stats.num_used_blocks,
        num_used_state_slots=stats.num_used_state_slots,
        num_prefix_query_tokens=stats.num_prefix_query_tokens,
        num_prefix_hit_tokens=stats.num_prefix_hit_tokens,
        num_preemptions=stats.num_preemptions,
        num_images_encoded=stats.num_images_encoded,
        num_image_hits=stats.num_image_hits,
        num_drafts=stats.num_drafts,
        num_draft_tokens=stats.num_draft_tokens,
        num_accepted_tokens=stats.num_accepted_tokens,
        encoding_s=stats.encoding_s,
        num_store_bytes=stats.num_store_bytes,
        num_store_written=stats.num_store_written,
        num_store_loaded=stats.num_store_loaded,
        num_store_damaged=stats.num_store_damaged,
        num_store_skipped=stats.num_store_skipped,
    )


OPERATIONS = (
    Operation(
        method="get",
        path="/health",
        summary="200 while requests are taken, else 503.",
        endpoint=lambda services: Watch(services.model, services.metrics).health,
        answers=(Health,),
        is_probe=True,
    ),
    Operation(
        method="get",
        path="/metrics",
        summary="Prometheus metrics.",
        endpoint=lambda services: Watch(services.model, services.metrics).metrics,
        is_scraped=True,
    ),
)
