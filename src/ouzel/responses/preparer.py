"""Converts the body of a response to a request for the engine and the first response object."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from ouzel.config import LimitsConfig
from ouzel.errors import InvalidRequest
from ouzel.generation import FilesOfKeys, GenerationRequest, ServedModel, accept, use_files
from ouzel.observability import Metrics
from ouzel.responses.checked_body import CheckedBody, check_body, limit_to_prompt
from ouzel.responses.compaction.compactor import Compactor
from ouzel.responses.context import Context, build_standalone_context, read_context
from ouzel.responses.dialect import OPENAI, ResponseDialect, ResponseStyle
from ouzel.responses.first_response import new_response, show_template
from ouzel.responses.hosted.kinds import NO_HOSTED_KINDS, HostedKinds
from ouzel.responses.hosted.later_turn import relax_choice
from ouzel.responses.hosted.opened_tools import OpenedTools
from ouzel.responses.hosted.opening import list_hosted, offer_types, open_hosted
from ouzel.responses.next_turn import NextTurn
from ouzel.responses.open_items import ReasoningForm
from ouzel.responses.output_items import new_id
from ouzel.responses.preparation_job import PreparationJob
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
from ouzel.responses.templates.filling import fill_template
from ouzel.responses.templates.library import NO_PROMPTS, PromptLibrary
from ouzel.store.base import Store
from ouzel.store.records import Item, StoredResponse
from ouzel.wire.aliases import restore_client_name
from ouzel.wire.decode import JsonObject, decode_object, parse_object
from ouzel.wire.logprobs import chat_logprobs, token_text
from ouzel.wire.offered_tools import HostedOffer, ToolNames
from ouzel.worker_threads import PreparationThreads


@dataclass(frozen=True, slots=True)
class PreparedResponse:
    """Everything about a response that is known before the engine gets the request."""

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
    hosted: OpenedTools | None = None  # the tools that this server runs; closed by the run
    next_turn: NextTurn | None = None  # makes further turns, if the response has such tools


class Preparer:
    """Prepares the responses of one model, in threads for prompts."""

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
        hosted: HostedKinds = NO_HOSTED_KINDS,
        prompts: PromptLibrary = NO_PROMPTS,
        files: FilesOfKeys | None = None,
    ) -> None:
        """`hosted` are the kinds of tools that this server runs, `prompts` its templates.

        `files` has the uploaded files that the input may name.
        """
        self.threads = threads
        self.hosted = hosted
        self.model = model
        self._metrics = metrics
        self._compactor = compactor
        self._limits = limits
        self._store = store
        self._dialect = dialect
        self._prompts = prompts
        self._files = files

    def use_files(self, key_id: str | None) -> AbstractContextManager[None]:
        """Lets a response in the block name the files of a key, if no request runs around it."""
        return use_files(None if self._files is None else self._files.of_key(key_id))

    async def prepare(
        self,
        body: bytes,
        *,
        key_id: str | None,
        arrival_s: float,
        queued: StoredResponse | None = None,
        body_type: type[ResponsesRequest] = ResponsesRequest,
        only_counts: bool = False,
    ) -> PreparedResponse:
        """Decodes, checks and renders a body.

        `queued` is the stored response that an earlier run of this body has begun. With
        `only_counts` the result serves to count tokens only: the context is not compacted, and the
        body may lack the model.
        """
        job = PreparationJob(
            parse=partial(self._dialect.parse, body),
            num_bytes=len(body),
            key_id=key_id,
            arrival_s=arrival_s,
            body=body,
            body_type=body_type,
            queued=queued,
            only_counts=only_counts,
        )
        try:
            return await self._prepare(job)
        except InvalidRequest as error:
            raise restore_client_name(error, partial(parse_object, body)) from error.__cause__

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
        """Checks and renders the object that `parse` returns, for a streamed response.

        The object has about `num_bytes` bytes. It may continue a response in `recent` or in the
        store. Without `generates` only the prompt is computed.
        """
        job = PreparationJob(
            parse=parse,
            num_bytes=num_bytes,
            key_id=key_id,
            arrival_s=arrival_s,
            recent=recent,
            generates=generates,
            is_stream=True,
        )
        try:
            return await self._prepare(job)
        except InvalidRequest as error:
            raise restore_client_name(error, parse) from error.__cause__

    async def _prepare(self, job: PreparationJob) -> PreparedResponse:
        """Prepares a body in one turn of a thread, or in two turns if the context needs more work.

        A single turn keeps parsed bodies from waiting in memory for a thread.
        """
        result = await self.threads.run(partial(self._check_and_begin, job), job.num_bytes)
        if isinstance(result, PreparedResponse):
            return result
        context = await self._find_context(job, result)
        if not result.hosted:
            return await self._begin_in_thread(job, result, context)
        tools = await open_hosted(result.hosted, result.fields, self.hosted, context, job.key_id)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(tools.close)
            prepared = await self._begin_in_thread(job, result, context, tools)
            if not job.only_counts:
                stack.pop_all()  # the run closes the tools
            return prepared

    async def _begin_in_thread(
        self,
        job: PreparationJob,
        checked_body: CheckedBody,
        context: Context,
        tools: OpenedTools | None = None,
    ) -> PreparedResponse:
        return await self.threads.run(
            partial(self._begin, job, checked_body, context, tools),
            job.num_bytes + context.num_stored_bytes,
            has_own_template=_has_own_template(checked_body),
        )

    def _check_and_begin(self, job: PreparationJob) -> PreparedResponse | CheckedBody:
        """Returns the prepared response, or the checked body only.

        The latter needs the store, a compaction, or the threads for templates of clients.
        """
        checked_body = self._check(job)
        fields = checked_body.fields
        context = build_standalone_context(
            fields, may_be_empty=job.recent is not None, template=checked_body.template_items
        )
        needs_more = fields.context_management or checked_body.hosted
        if context is None or needs_more or _has_own_template(checked_body):
            return checked_body
        return self._begin(job, checked_body, context)

    async def _find_context(self, job: PreparationJob, checked_body: CheckedBody) -> Context:
        context = await read_context(
            checked_body.fields,
            self._store,
            job.key_id,
            job.recent,
            template=checked_body.template_items,
        )
        if job.only_counts:
            return context
        return await self._compactor.compact_context(
            checked_body, context, key_id=job.key_id, arrival_s=job.arrival_s
        )

    def _check(self, job: PreparationJob) -> CheckedBody:
        """Parses, decodes and checks the body by the rules of the dialect.

        A prompt template is filled in before the fields are decoded.
        """
        dialect = self._dialect
        parsed = job.parse()
        # A queued body may come from a server with another profile, which needs no model.
        if not job.only_counts and job.queued is None:
            dialect.check(parsed, self.model)
        filled_fields, template = fill_template(
            parsed, self._prompts, readable=self.model.renderer.readable
        )
        fields = dialect.translate_fields(decode_object(filled_fields, job.body_type))
        entries = list_hosted(fields, self.hosted)
        if not entries:
            checked_body = self._check_fields(fields, offer_types(self.hosted))
            return replace(checked_body, template=template)
        # The functions are known when the tools are open; the choice among them is checked then.
        early = msgspec.structs.replace(fields, tool_choice=None)
        checked_body = self._check_fields(early, offer_types(self.hosted))
        return replace(checked_body, fields=fields, hosted=entries, template=template)

    def _check_fields(self, fields: ResponsesRequest, hosted: HostedOffer) -> CheckedBody:
        checked_body = check_body(
            fields, self.model, self._limits, has_store=self._store is not None, hosted=hosted
        )
        return replace(checked_body, chat=self._dialect.adjust_chat(checked_body.chat, fields))

    def _begin(
        self,
        job: PreparationJob,
        checked_body: CheckedBody,
        context: Context,
        tools: OpenedTools | None = None,
    ) -> PreparedResponse:
        """Renders the prompt and builds the first response object.

        The response is streamed if the job or the body says so. `tools` are the tools that this
        server runs.
        """
        queued = job.queued
        template = checked_body.template
        if tools is not None:
            checked_body = self._check_fields(checked_body.fields, tools.offer)
        fields = checked_body.fields
        continued_id = fields.previous_response_id or find_conversation_id(fields)
        response_id = new_id("resp", continues=continued_id) if queued is None else queued.id
        request = self._request(
            checked_body if job.generates else limit_to_prompt(checked_body),
            context,
            response_id,
            job.arrival_s,
        )
        style = self._dialect.style
        is_stored = fields.store is not False and self._store is not None
        response = new_response(
            fields,
            request.params,
            response_id=response_id,
            created_at=int(time.time()) if queued is None else read_creation_time(queued),
            max_tokens=checked_body.options.max_tokens,
            model_name=self.model.names[0],
            is_stored=is_stored,
            prompt_token_ids=request.prompt.token_ids,
            warnings=(*request.warnings, *request.dropped_formats),
            completed_at=style.early_completed_at,
            hosted=self.hosted,
        )
        return PreparedResponse(
            request,
            response if template is None else show_template(response, template),
            logprobs=_make_logprobs(fields, self.model),
            reasoning_form=_choose_reasoning_form(fields, style),
            limit_reason=style.limit_reason,
            tool_names=checked_body.chat.tool_names,
            is_stream=job.is_stream or bool(fields.stream),
            obfuscates=_obfuscates(fields),
            generates=job.generates,
            context=context,
            input_items=stored_items(context.items_to_store) if is_stored else (),
            body=self._body_to_store(job, checked_body) if fields.background else None,
            model=self.model,
            metrics=self._metrics,
            hosted=tools,
            next_turn=None
            if tools is None
            else self._make_next_turn(job, checked_body, context, tools, response_id),
        )

    def _body_to_store(self, job: PreparationJob, checked_body: CheckedBody) -> bytes | None:
        """Returns the body for a later run, without the secrets of tools that this server runs."""
        if job.body is None or not checked_body.hosted:
            return job.body
        body = self._dialect.parse(job.body)
        if body.get("tools") is None:
            return job.body  # a prompt template has the tools
        tools = [self.hosted.keep(tool) for tool in checked_body.fields.tools or []]
        return msgspec.json.encode({**body, "tools": tools})

    def _make_next_turn(
        self,
        job: PreparationJob,
        checked_body: CheckedBody,
        context: Context,
        tools: OpenedTools,
        response_id: str,
    ) -> NextTurn:
        fields = checked_body.fields
        choice = relax_choice(fields.tool_choice)
        relaxed_fields = msgspec.structs.replace(fields, tool_choice=choice)
        relaxed = self._check_fields(relaxed_fields, tools.offer)
        return NextTurn(
            checked_body=relaxed,
            context=context,
            hosted_names=tools.names,
            make_request=partial(self._request, response_id=response_id, arrival_s=job.arrival_s),
            threads=self.threads,
            num_bytes=job.num_bytes + context.num_stored_bytes,
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
    to_text = token_text(model, as_token_ids=fields.return_tokens_as_token_ids)
    return lambda positions: chat_logprobs(positions, model, to_text).content
