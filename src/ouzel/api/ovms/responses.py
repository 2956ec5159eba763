"""Defines OVMS's dialect of the Responses API: its meaning of some fields, and reasoning summaries.

Features that OVMS lacks (a store, conversations, WebSockets, …) work as in OpenAI's dialect.
"""

from msgspec import UNSET
from msgspec.structs import replace

from ouzel.api.ovms.body import (
    apply_ovms_meaning,
    check_model_and_stream,
    parse_body,
    switches_reasoning,
    translate_fields,
)
from ouzel.generation import ServedModel
from ouzel.responses.dialect import OPENAI, ResponseDialect, ResponseStyle
from ouzel.responses.request import ResponsesRequest
from ouzel.wire.decode import JsonObject, log_ignored


def response_dialect(profile: str) -> ResponseDialect:
    """Returns the dialect of a server with this profile."""
    return _OVMS if profile == "ovms" else OPENAI


def _check(parsed: JsonObject, model: ServedModel) -> None:
    check_model_and_stream(parsed, model.names)


def _translate(request: ResponsesRequest) -> ResponsesRequest:
    """Translates the shared fields, and drops efforts beside template variables for reasoning."""
    request = translate_fields(request)
    if not switches_reasoning(request.chat_template_kwargs):
        return request
    dropped = set()
    if request.reasoning_effort is not None:
        dropped.add("reasoning_effort")
        request = replace(request, reasoning_effort=None)
    if request.reasoning is not None and request.reasoning.effort is not None:
        dropped.add("reasoning.effort")
        request = replace(request, reasoning=replace(request.reasoning, effort=None))
    log_ignored(dropped)
    return request


_OVMS = ResponseDialect(
    parse=parse_body,
    check=_check,
    translate_fields=_translate,
    adjust_chat=apply_ovms_meaning,
    style=ResponseStyle(
        has_reasoning_as_summary=True, limit_reason="max_tokens", early_completed_at=UNSET
    ),
)
