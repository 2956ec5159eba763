"""From the body of a response to a request of the engine and the response as it begins."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import msgspec

from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import GenerationRequest, ServedModel
from ouzel.responses.context import Context, context_of
from ouzel.responses.first_response import new_response
from ouzel.responses.input_items import input_items_of
from ouzel.responses.items import new_id
from ouzel.responses.prompt import render_input
from ouzel.responses.recent_responses import RecentResponses
from ouzel.responses.request import (
    LOGPROBS,
    ResponsesRequest,
    check_includable,
    shows_logprobs,
)
from ouzel.responses.response_builder import Logprobs
from ouzel.responses.response_object import ResponseObject
from ouzel.responses.stored_items import kept_items
from ouzel.responses.text_format import demanded_form
from ouzel.store.base import Store
from ouzel.store.records import Item, StoredResponse
from ouzel.wire.choice_fields import choosing_of
from ouzel.wire.decode import JsonObject, decode_object, log_ignored, may_take_long, parse_object
from ouzel.wire.fields import check_limits, check_num_logprobs, generation_request, max_tokens_of
from ouzel.wire.logprobs import chat_logprobs, token_text
from ouzel.wire.tools import Choice, FunctionDefinition, NamedFunction, Tool, asked_tools

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class PreparedResponse:
    """Everything that is known before the engine is asked."""

    request: GenerationRequest
    response: ResponseObject  # as it begins
    logprobs: Logprobs | None
    summarises: bool
    is_stream: bool
    obfuscates: bool
    generates: bool  # else the prompt is computed, so that the response that continues it begins sooner
    context: Context
    input_items: tuple[Item, ...]  # as they are kept; none for a response that is not
    body: bytes | None  # of one in the background: it may have to run again


class Preparer:
    def __init__(self, model: ServedModel, limits: LimitsConfig, store: Store | None) -> None:
        self._model = model
        self._limits = limits
        self._store = store

    async def prepare(
        self,
        body: bytes,
        *,
        key_id: str | None,
        arrival_s: float,
        again: StoredResponse | None = None,
        body_type: type[ResponsesRequest] = ResponsesRequest,
    ) -> PreparedResponse:
        """Decodes, checks and renders. `again`: the response that this body has once begun."""
        takes_long = may_take_long(body)
        asked = await _done(lambda: self._decoded(parse_object(body), body_type), takes_long)
        context = await context_of(asked, self._store, key_id)
        begin = partial(self._begin, asked, context, arrival_s, again=again, body=body)
        return await _done(begin, takes_long or bool(context.earlier))

    async def prepare_object(
        self,
        given: JsonObject,
        *,
        key_id: str | None,
        arrival_s: float,
        takes_long: bool,
        generates: bool,
        recent: RecentResponses,
    ) -> PreparedResponse:
        """The same for a body that has been parsed. `recent`: those that it may continue beside the kept ones."""
        asked = await _done(partial(self._decoded, given, ResponsesRequest), takes_long)
        context = await context_of(asked, self._store, key_id, recent)
        begin = partial(self._begin, asked, context, arrival_s, generates=generates)
        return await _done(begin, takes_long or bool(context.earlier))

    def request_of(self, asked: ResponsesRequest, *, arrival_s: float) -> GenerationRequest:
        """Of a response that continues nothing, and that nobody is shown."""
        return self._request(asked, Context((), input_items_of(asked.input)), new_id("resp"), arrival_s, generates=True)

    def _decoded(self, given: JsonObject, body_type: type[ResponsesRequest]) -> ResponsesRequest:
        asked, unknown = decode_object(given, body_type)
        log_ignored(unknown)
        self._check(asked)
        return asked

    def _begin(
        self,
        asked: ResponsesRequest,
        context: Context,
        arrival_s: float,
        *,
        again: StoredResponse | None = None,
        body: bytes | None = None,
        generates: bool = True,
    ) -> PreparedResponse:
        response_id = new_id("resp") if again is None else again.id
        request = self._request(asked, context, response_id, arrival_s, generates=generates)
        is_kept = asked.store is not False and self._store is not None
        response = new_response(
            asked,
            request.params,
            response_id=response_id,
            created_at=int(time.time()) if again is None else created_at_of(again),
            max_tokens=_max_tokens(asked)[1],
            model_name=self._model.names[0],
            is_kept=is_kept,
        )
        return PreparedResponse(
            request,
            response,
            logprobs=_logprobs_of(asked, self._model),
            summarises=asked.reasoning is not None and asked.reasoning.summary is not None,
            is_stream=bool(asked.stream),
            obfuscates=asked.stream_options is not None and bool(asked.stream_options.include_obfuscation),
            generates=generates,
            context=context,
            input_items=kept_items(context.to_keep) if is_kept else (),
            body=body if asked.background else None,
        )

    def _check(self, asked: ResponsesRequest) -> None:
        check_limits(asked, self._model, self._limits)
        check_num_logprobs(asked.top_logprobs, self._limits, param="top_logprobs")
        for position, name in enumerate(asked.include or []):
            check_includable(name, f"include[{position}]")
        if asked.top_logprobs and not shows_logprobs(asked):
            limit = f'needs include to have "{LOGPROBS}"'
            raise InvalidRequest(f"top_logprobs {limit}, given {asked.top_logprobs}", param="top_logprobs")
        if asked.stream and (num_choices := choosing_of(asked).n) > 1:
            field = "n" if asked.n is not None else "num_return_sequences"
            raise InvalidRequest(f"{field} must be 1 in a stream of responses, given {num_choices}", param=field)
        if asked.stream_options is not None and not asked.stream:
            raise InvalidRequest("stream_options needs stream to be true", param="stream_options")
        self._check_keeping(asked)

    def _check_keeping(self, asked: ResponsesRequest) -> None:
        for field, is_asked in (("store", asked.store), ("background", asked.background)):
            if is_asked and self._store is None:
                raise InvalidRequest(f"{field} must be false: this server keeps nothing, given true", param=field)
        for field, is_asked in (("conversation", asked.conversation is not None), ("background", asked.background)):
            if is_asked and asked.store is False:
                raise InvalidRequest(f"{field} needs store to be true, given false", param=field)

    def _request(
        self, asked: ResponsesRequest, context: Context, response_id: str, arrival_s: float, *, generates: bool
    ) -> GenerationRequest:
        tools = asked_tools(_ToolFields.of(asked), guides_all=self._model.guides_tools)
        max_tokens = _max_tokens(asked) if generates else ("generate", 0)
        prompt = render_input(asked, context.items, self._model, tools=tools.shown, max_tokens=max_tokens[1])
        return generation_request(
            asked,
            self._model,
            prompt,
            request_id=response_id,
            max_tokens=max_tokens,
            form=demanded_form(None if asked.text is None else asked.text.format, asked),
            default_max_tokens=None,
            shows_prompt=not generates,
            num_logprobs=(asked.top_logprobs or 0) if shows_logprobs(asked) else None,
            continues_prompt=asked.continue_final_message or False,
            parses_output=True,
            tool_use=tools.use,
            arrival_s=arrival_s,
        )


async def _done(work: Callable[[], Result], takes_long: bool) -> Result:
    return await asyncio.to_thread(work) if takes_long else work()


def created_at_of(stored: StoredResponse) -> int:
    return msgspec.json.decode(stored.body, type=_Created).created_at


class _Created(msgspec.Struct):
    created_at: int


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
