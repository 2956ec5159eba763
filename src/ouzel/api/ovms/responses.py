"""OVMS's dialect of the Responses API: its reading of some fields, and reasoning as a summary.

Features that OVMS lacks (a store, conversations, WebSockets, …) work as in OpenAI's dialect.
"""

from msgspec import UNSET
from msgspec.structs import replace

from ouzel.api.ovms.body import (
    check_model_and_stream,
    in_our_words,
    in_ovms_meaning,
    parse_body,
    switches_reasoning,
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


def _in_our_words(request: ResponsesRequest) -> ResponsesRequest:
    """Puts the shared fields into our words, and drops the efforts where template variables say how much to reason."""
    request = in_our_words(request)
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
    in_our_words=_in_our_words,
    in_its_meaning=in_ovms_meaning,
    style=ResponseStyle(
        has_reasoning_as_summary=True, limit_reason="max_tokens", early_completed_at=UNSET
    ),
)
