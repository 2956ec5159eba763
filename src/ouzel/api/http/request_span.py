"""Traces a request by a span from its arrival to the end of its answer."""

from http import HTTPStatus

from starlette.types import Scope

from ouzel.api.http.exchange import Exchange, get_header, get_method
from ouzel.generation import collect_span_attributes
from ouzel.observability import Attributes, Span

# limit for texts that the client chooses
_MAX_CHARACTERS = 1024


def end_request_span(span: Span, exchange: Exchange, scope: Scope) -> None:
    """Exports the span of a request, except for routine requests that succeeded."""
    status = exchange.status or HTTPStatus.INTERNAL_SERVER_ERROR
    if exchange.is_routine and status < HTTPStatus.BAD_REQUEST:
        return
    method = get_method(scope)
    attributes: dict[str, str | int] = {
        "http.request.method": method,
        "http.response.status_code": status,
        "url.path": scope["path"][:_MAX_CHARACTERS],
        "url.scheme": scope["scheme"],
    }
    if exchange.route:
        attributes["http.route"] = exchange.route
    agent = get_header(scope, b"user-agent")
    if agent:
        attributes["user_agent.original"] = agent[:_MAX_CHARACTERS]
    _end(span, exchange, f"{method} {exchange.route}".rstrip(), status, attributes)


def end_message_span(span: Span, exchange: Exchange, name: str) -> None:
    """Exports the span of a request that came by a WebSocket."""
    _end(span, exchange, name, exchange.status or HTTPStatus.INTERNAL_SERVER_ERROR, {})


def _end(span: Span, exchange: Exchange, name: str, status: int, attributes: Attributes) -> None:
    generation = exchange.generation
    generated: Attributes = {}
    # a background response has a span of its own
    if generation is not None and generation.finish_reasons:
        generated = collect_span_attributes(generation)
    error = str(int(status)) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else ""
    span.end(
        {**attributes, **generated, "gen_ai.request.id": exchange.request_id},
        name=name,
        error=error,
    )
