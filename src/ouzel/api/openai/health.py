"""Answers GET /health and GET /metrics, for monitoring."""

from dataclasses import replace
from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel import __version__
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.send import json_response
from ouzel.generation import EngineClient, EngineState, ServedModel
from ouzel.lifecycle.residents import Residents
from ouzel.observability import EngineReading, build_metrics, exposition, process_metrics
from ouzel.observability.model_series import ModelReading, write_model_metrics
from ouzel.observability.series import CONTENT_TYPE


class EngineHealth(msgspec.Struct):
    model: str
    status: str
    reason: str


class Health(msgspec.Struct):
    status: str
    reason: str | msgspec.UnsetType = msgspec.UNSET
    # each engine, if there are several
    engines: list[EngineHealth] | msgspec.UnsetType = msgspec.UNSET


class Watch:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def health(self, request: Request) -> Response:
        """Answers 200 if any model takes requests, else 503 with the state and its reason."""
        state, reason = self._catalogue.state, self._catalogue.reason
        each = [
            EngineHealth(served.model.names[0], engine.state.value, engine.reason)
            for served in self._catalogue.bases
            for engine in served.model.engine.members
        ]
        engines = each if len(each) > 1 else msgspec.UNSET
        if state is EngineState.READY:
            return json_response(Health("ok", engines=engines))
        return json_response(Health(state.value, reason, engines), HTTPStatus.SERVICE_UNAVAILABLE)

    async def metrics(self, request: Request) -> Response:
        models = [(served.metrics, _readings(served.model)) for served in self._catalogue]
        models += [(metrics, []) for metrics in self._catalogue.kept_metrics]
        on_demand = self._catalogue.on_demand
        texts = [
            exposition(models),
            "" if on_demand is None else _write_residents(on_demand.residents),
            self._catalogue.shared.responses.text(),
            build_metrics(__version__),
            process_metrics(),
        ]
        return Response("".join(texts), media_type=CONTENT_TYPE)


def _write_residents(residents: Residents) -> str:
    readings = [
        ModelReading(
            name=model.name,
            state=model.state.value,
            is_loaded=model.state.is_loaded,
            num_open=model.num_open,
            num_loads=model.num_loads,
            loading_s=model.loading_s,
            num_failures=model.num_failures,
            num_evictions=model.num_evictions,
            num_bytes=model.num_bytes,
        )
        for model in residents
    ]
    return write_model_metrics(readings, residents.num_waiting)


def _readings(model: ServedModel) -> list[EngineReading]:
    """Reads the engines of a model. An adapter has no engine of its own."""
    return [] if model.adapter else [_reading(engine) for engine in model.engine.members]


def _reading(engine: EngineClient) -> EngineReading:
    info, stats = engine.info, engine.stats()
    without_stats = EngineReading(
        num_restarts=engine.num_restarts,
        step_age_s=engine.step_age_s,
        block_size=info.block_size,
        num_blocks=info.num_blocks,
        num_state_slots=info.num_state_slots,
        max_loras=info.max_loras,
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
        running_adapters=frozenset(stats.running_adapters),
        waiting_adapters=frozenset(stats.waiting_adapters),
    )


OPERATIONS = (
    Operation(
        method="get",
        path="/health",
        summary="Answers 200 while the server takes requests, else 503.",
        overall=lambda catalogue: Watch(catalogue).health,
        answers=(Health,),
        is_probe=True,
    ),
    Operation(
        method="get",
        path="/metrics",
        summary="Prometheus metrics.",
        overall=lambda catalogue: Watch(catalogue).metrics,
        is_scraped=True,
    ),
)
