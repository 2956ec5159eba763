"""POST /responses: from a body to a request of the engine and an answer. Nothing is stored."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Literal

import msgspec

from ouzel.api.answer import Answer
from ouzel.api.choice_fields import choosing_of
from ouzel.api.decode import decode_object, log_ignored, parse_object
from ouzel.api.error_objects import Fault
from ouzel.api.exchange import LastWords
from ouzel.api.fields import check_limits, check_num_logprobs, generation_request, max_tokens_of
from ouzel.api.framing import SSE, Framing
from ouzel.api.logprobs import chat_logprobs, token_text
from ouzel.api.responses.building import Logprobs, ResponseBuilder, new_id
from ouzel.api.responses.echoing import new_response
from ouzel.api.responses.events import ResponseEvent
from ouzel.api.responses.prompting import render_input
from ouzel.api.responses.request import LOGPROBS, ResponsesRequest, shows_logprobs
from ouzel.api.responses.response_object import ResponseError, ResponseObject
from ouzel.api.responses.text_format import demanded_form
from ouzel.api.tools import Choice, FunctionDefinition, NamedFunction, Tool, asked_tools
from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import Event, GenerationRequest, ServedModel, Usage

_FRAMING = msgspec.structs.replace(SSE, names_events=True)


class Responses:
    """The `Dialect`."""

    def __init__(self, model: ServedModel, limits: LimitsConfig, *, sends_done: bool) -> None:
        """`sends_done`: streams end with `data: [DONE]`."""
        self._model = model
        self._limits = limits
        self._framing = _FRAMING if sends_done else msgspec.structs.replace(_FRAMING, end=b"")

    def prepare(self, body: bytes, arrival_s: float) -> tuple[list[GenerationRequest], Answer]:
        asked, unknown = decode_object(parse_object(body), ResponsesRequest)
        log_ignored(unknown)
        self._check(asked)
        response_id = new_id("resp")
        request = self._request(asked, response_id, arrival_s)
        response = new_response(
            asked,
            request.params,
            response_id=response_id,
            max_tokens=_max_tokens(asked)[1],
            model_name=self._model.names[0],
        )
        builder = ResponseBuilder(
            response,
            logprobs=_logprobs_of(asked, self._model),
            summarises=asked.reasoning is not None and asked.reasoning.summary is not None,
            obfuscates=asked.stream_options is not None and bool(asked.stream_options.include_obfuscation),
        )
        return [request], ResponsesAnswer(builder, self._framing, is_stream=bool(asked.stream))

    def _check(self, asked: ResponsesRequest) -> None:
        check_limits(asked, self._model, self._limits)
        check_num_logprobs(asked.top_logprobs, self._limits, param="top_logprobs")
        if asked.top_logprobs and not shows_logprobs(asked):
            limit = f'needs include to have "{LOGPROBS}"'
            raise InvalidRequest(f"top_logprobs {limit}, given {asked.top_logprobs}", param="top_logprobs")
        if asked.stream and (num_choices := choosing_of(asked).n) > 1:
            field = "n" if asked.n is not None else "num_return_sequences"
            raise InvalidRequest(f"{field} must be 1 in a stream of responses, given {num_choices}", param=field)
        if asked.stream_options is not None and not asked.stream:
            raise InvalidRequest("stream_options needs stream to be true", param="stream_options")

    def _request(self, asked: ResponsesRequest, response_id: str, arrival_s: float) -> GenerationRequest:
        tools = asked_tools(_ToolFields.of(asked), guides_all=self._model.guides_tools)
        max_tokens = _max_tokens(asked)
        prompt = render_input(asked, self._model, tools=tools.shown, max_tokens=max_tokens[1])
        return generation_request(
            asked,
            self._model,
            prompt,
            request_id=response_id,
            max_tokens=max_tokens,
            form=demanded_form(None if asked.text is None else asked.text.format, asked),
            default_max_tokens=None,
            num_logprobs=(asked.top_logprobs or 0) if shows_logprobs(asked) else None,
            continues_prompt=asked.continue_final_message or False,
            parses_output=True,
            tool_use=tools.use,
            arrival_s=arrival_s,
        )


class ResponsesAnswer:
    """The `Answer`."""

    def __init__(self, builder: ResponseBuilder, framing: Framing, *, is_stream: bool) -> None:
        self.is_stream = is_stream
        self.framing = framing
        self.last_words: LastWords | None = self._last_words
        self._builder = builder
        self._has_begun = False

    def chunks(self, events: Sequence[Event], usage: Usage) -> list[ResponseEvent]:
        first = [] if self._has_begun else list(self._builder.begin())
        self._has_begun = True
        return first + [made for event in events for made in self._builder.advance(event)]

    def last_chunks(self, usage: Usage) -> list[ResponseEvent]:
        return list(self._builder.complete(usage))

    def whole(self, events: Sequence[Event], usage: Usage) -> ResponseObject:
        self.chunks(sorted(events, key=lambda event: event.index), usage)  # choice by choice
        self.last_chunks(usage)
        return self._builder.response

    def _last_words(self, fault: Fault) -> bytes:
        error = ResponseError(
            "invalid_prompt" if fault.status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error", fault.message
        )
        return self.framing.frames(self._builder.fail(error)) + self.framing.end


class _ToolFields(msgspec.Struct):
    """For `asked_tools`: the old names are none of this endpoint's."""

    tools: list[Tool] | None
    tool_choice: Choice | None
    parallel_tool_calls: bool | None
    enable_tool_guided_generation: bool | None
    functions: list[FunctionDefinition] | None = None
    function_call: Literal["none", "auto"] | NamedFunction | None = None

    @classmethod
    def of(cls, asked: ResponsesRequest) -> "_ToolFields":
        return cls(asked.tools, asked.tool_choice, asked.parallel_tool_calls, asked.enable_tool_guided_generation)


def _max_tokens(asked: ResponsesRequest) -> tuple[str, int | None]:
    if asked.max_output_tokens is not None:
        return "max_output_tokens", asked.max_output_tokens
    return max_tokens_of(asked)


def _logprobs_of(asked: ResponsesRequest, model: ServedModel) -> Logprobs | None:
    if not shows_logprobs(asked):
        return None
    text_of = token_text(model, as_token_ids=asked.return_tokens_as_token_ids)
    return lambda positions: chat_logprobs(positions, model, text_of).content
