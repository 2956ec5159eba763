"""Runs single calls of hosted tools, with their metrics and spans, for every API."""

import time

from ouzel.observability import Metrics, span_in_scope
from ouzel.responses.hosted.items import AnyHostedItem
from ouzel.responses.hosted.kinds import CallResult
from ouzel.responses.hosted.opened_tools import OpenedTools


async def finish_call(item: AnyHostedItem, tools: OpenedTools, metrics: Metrics) -> CallResult:
    """Runs the call of a running item; counts and traces it."""
    begun_s = time.perf_counter()
    result = await tools.run(item)
    is_failed = result.item.is_failed
    metrics.tool_called(item.kind, seconds=time.perf_counter() - begun_s, is_failed=is_failed)
    _trace(item, begun_s, is_failed=is_failed)
    return result


def _trace(item: AnyHostedItem, begun_s: float, *, is_failed: bool) -> None:
    """Adds a span of the call to the trace of the request, by the names of OpenTelemetry."""
    parent = span_in_scope.get()
    if parent is None:
        return
    span = parent.child("execute_tool", start_s=begun_s)
    name, namespace = item.called_name()
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name if namespace is None else f"{namespace}.{name}",
        "gen_ai.tool.call.id": item.id,
        "gen_ai.tool.type": item.kind,
    }
    span.end(attributes, error="tool_failed" if is_failed else "")
