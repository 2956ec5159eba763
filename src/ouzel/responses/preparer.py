"""Converts the body of a response to a request for the engine and the first response object."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import GenerationRequest, ServedModel, accept
from ouzel.observability import Metrics
from ouzel.responses.checked_body import CheckedBody, check_body, limit_to_prompt
from ouzel.responses.compaction.compactor import Compactor
from ouzel.responses.context import Context, build_standalone_context, context_of
from ouzel.responses.dialect import OPENAI, ResponseDialect, ResponseStyle
from ouzel.responses.first_response import new_response
from ouzel.responses.open_items import ReasoningForm
from ouzel.responses.output_items import new_id
from ouzel.responses.prompt import render_input
from ouzel.responses.request import (
    ResponsesRequest,
    encrypts_reasoning,
    find_conversation_id,
    shows_logprobs,
)
from ouzel.responses.response_builder import Logprobs
from ouzel.responses.response_object import LimitReason, ResponseObject
from ouzel.responses.stored.recent_responses import RecentResponses
from ouzel.responses.stored_items import stored_items
from ouzel.store.base import Store
from ouzel.store.records import Item, StoredResponse
from ouzel.wire.aliases import as_named
from ouzel.wire.decode import JsonObject, decode_object, parse_object
from ouzel.wire.logprobs import chat_logprobs, token_text
from ouzel.wire.offered_tools import ToolNames
from ouzel.worker_threads import PreparationThreads


@dataclass(frozen=True, slots=True)
class PreparedResponse:
    """Holds everything about a response that is known before the engine gets the request."""

    request: GenerationRequest
    response: ResponseObject  # the first state, without output
    logprobs: Logprobs | None
    reasoning_form: ReasoningForm
    limit_reason: LimitReason
    tool_names: ToolNames
    is_stream: bool  # the client follows its events
    obfuscates: bool  # events get random characters that hide the length of their text
    generates: bool  # False: compute the prompt only, so that a response that continues it is fast
    context: Context
    input_items: tuple[Item, ...]  # the items to store; none for a response that is not stored
    body: bytes | None  # the body of a response in the background, which may have to run again
    model: ServedModel
    metrics: Metrics


class Preparer:
    def __init__(
        self,
        model: ServedModel,
        limits: LimitsConfig,
        store: Store | None,
        threads: PreparationThreads,
        *,
        compactor: Compactor,
        metrics: Metrics,
        dialect: ResponseDialect = OPENAI,
    ) -> None:
        self.threads = threads
        self.model = model
        self._metrics = metrics
        self._compactor = compactor
        self._limits = limits
        self._store = store
        self._dialect = dialect

    async def prepare(
        self,
        body: bytes,
        *,
        key_id: str | None,
        arrival_s: float,
        again: StoredResponse | None = None,
        body_type: type[ResponsesRequest] = ResponsesRequest,
        only_counts: bool = False,
    ) -> PreparedResponse:
        """Decodes, checks and renders. `again` is the response that this body has once begun.

        With `only_counts` nothing is made of it: the context is left as it is, and the model may be left out.
        """
        begin = partial(self._begin, arrival_s=arrival_s, again=again, body=body)

        async def context(checked_body: CheckedBody) -> Context:
            found = await context_of(checked_body.fields, self._store, key_id)
            if only_counts:
                return found
            return await self._compactor.compact_context(
                checked_body, found, key_id=key_id, arrival_s=arrival_s
            )

        def check() -> CheckedBody:
            needs_model = (
                not only_counts and again is None
            )  # a server of another profile may have queued the body
            return self._check(self._dialect.parse(body), body_type, needs_model=needs_model)

        try:
            return await self._prepared(check, context, begin, len(body))
        except InvalidRequest as error:
            raise as_named(error, partial(parse_object, body)) from error.__cause__

    async def prepare_object(
        self,
        parse: Callable[[], JsonObject],
        *,
        key_id: str | None,
        arrival_s: float,
        num_bytes: int,
        generates: bool,
        recent: RecentResponses,
    ) -> PreparedResponse:
        """Prepares a body of `num_bytes` when parsed, which may continue those of `recent` beside the stored ones.

        The response is streamed. Without `generates` the prompt alone is computed.
        """
        begin = partial(self._begin, arrival_s=arrival_s, generates=generates, is_stream=True)

        async def context(checked_body: CheckedBody) -> Context:
            found = await context_of(checked_body.fields, self._store, key_id, recent)
            return await self._compactor.compact_context(
                checked_body, found, key_id=key_id, arrival_s=arrival_s
            )

        def check() -> CheckedBody:
            return self._check(parse(), ResponsesRequest, needs_model=True)

        try:
            return await self._prepared(check, context, begin, num_bytes, may_be_empty=True)
        except InvalidRequest as error:
            raise as_named(error, parse) from error.__cause__

    async def _prepared(
        self,
        check: Callable[[], CheckedBody],
        context_of_body: Callable[[CheckedBody], Awaitable[Context]],
        begin: Callable[[CheckedBody, Context], PreparedResponse],
        num_bytes: int,
        *,
        may_be_empty: bool = False,
    ) -> PreparedResponse:
        """Does all in one turn of a thread where nothing else is asked for: parsed bodies that wait would pile up."""

        def check_and_begin() -> PreparedResponse | CheckedBody:
            checked_body = check()
            context = build_standalone_context(checked_body.fields, may_be_empty=may_be_empty)
            needs_more = _has_own_template(checked_body) or checked_body.fields.context_management
            return checked_body if context is None or needs_more else begin(checked_body, context)

        result = await self.threads.run(check_and_begin, num_bytes)
        if isinstance(result, PreparedResponse):
            return result
        context = await context_of_body(result)
        return await self.threads.run(
            partial(begin, result, context),
            num_bytes + context.num_stored_bytes,
            has_own_template=_has_own_template(result),
        )

    def _check(
        self, parsed: JsonObject, body_type: type[ResponsesRequest], *, needs_model: bool
    ) -> CheckedBody:
        dialect = self._dialect
        if needs_model:
            dialect.check(parsed, self.model)
        fields = dialect.in_our_words(decode_object(parsed, body_type))
        checked_body = check_body(
            fields, self.model, self._limits, has_store=self._store is not None
        )
        return replace(checked_body, chat=dialect.in_its_meaning(checked_body.chat, fields))

    def _begin(
        self,
        checked_body: CheckedBody,
        context: Context,
        *,
        arrival_s: float,
        again: StoredResponse | None = None,
        body: bytes | None = None,
        generates: bool = True,
        is_stream: bool = False,
    ) -> PreparedResponse:
        """Renders the prompt and builds the first response object.

        The response is streamed if `is_stream` is true or the body asks for a stream.
        """
        fields = checked_body.fields
        continued_id = fields.previous_response_id or find_conversation_id(fields)
        response_id = new_id("resp", continues=continued_id) if again is None else again.id
        request = self._request(
            checked_body if generates else limit_to_prompt(checked_body),
            context,
            response_id,
            arrival_s,
        )
        style = self._dialect.style
        is_kept = fields.store is not False and self._store is not None
        response = new_response(
            fields,
            request.params,
            response_id=response_id,
            created_at=int(time.time()) if again is None else read_creation_time(again),
            max_tokens=checked_body.options.max_tokens,
            model_name=self.model.names[0],
            is_kept=is_kept,
            prompt_token_ids=request.prompt.token_ids,
            warnings=(*request.warnings, *request.dropped_formats),
            completed_at=style.early_completed_at,
        )
        return PreparedResponse(
            request,
            response,
            logprobs=_make_logprobs(fields, self.model),
            reasoning_form=_choose_reasoning_form(fields, style),
            limit_reason=style.limit_reason,
            tool_names=checked_body.chat.tool_names,
            is_stream=is_stream or bool(fields.stream),
            obfuscates=_obfuscates(fields),
            generates=generates,
            context=context,
            input_items=stored_items(context.items_to_store) if is_kept else (),
            body=body if fields.background else None,
            model=self.model,
            metrics=self._metrics,
        )

    def _request(
        self, checked_body: CheckedBody, context: Context, response_id: str, arrival_s: float
    ) -> GenerationRequest:
        prompt = render_input(checked_body, context.items, self.model)
        return accept(
            checked_body.options, prompt, self.model, request_id=response_id, arrival_s=arrival_s
        )


def _obfuscates(fields: ResponsesRequest) -> bool:
    options = fields.stream_options
    return options is not None and bool(options.include_obfuscation)


def _has_own_template(checked_body: CheckedBody) -> bool:
    return checked_body.chat.rendering.chat_template is not None


def read_creation_time(stored: StoredResponse) -> int:
    return msgspec.json.decode(stored.body, type=_Created).created_at


class _Created(msgspec.Struct):
    created_at: int


def _choose_reasoning_form(fields: ResponsesRequest, style: ResponseStyle) -> ReasoningForm:
    is_summarised = fields.reasoning is not None and fields.reasoning.is_summarised
    return ReasoningForm(
        has_content=not style.has_reasoning_as_summary,
        is_summarised=is_summarised or style.has_reasoning_as_summary,
        is_encrypted=encrypts_reasoning(fields),
    )


def _make_logprobs(fields: ResponsesRequest, model: ServedModel) -> Logprobs | None:
    if not shows_logprobs(fields):
        return None
    join_texts = token_text(model, as_token_ids=fields.return_tokens_as_token_ids)
    return lambda positions: chat_logprobs(positions, model, join_texts).content
