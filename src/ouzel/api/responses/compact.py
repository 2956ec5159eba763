"""Compacts a conversation to the user's messages and a summary: POST /responses/compact."""

import asyncio
import time
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.exchange import get_exchange
from ouzel.generation import ServedModel
from ouzel.responses.compaction.summariser import Summariser
from ouzel.responses.context import read_context
from ouzel.responses.input_items import InputItem, KnownTools, read_messages
from ouzel.responses.items.compaction_item import CompactionItem
from ouzel.responses.items.input_schema import Input
from ouzel.responses.items.packed_text import SUMMARY
from ouzel.responses.output_items import new_id
from ouzel.responses.request import ResponsesRequest
from ouzel.responses.response_object import ResponseUsage, response_usage
from ouzel.responses.stored_items import stored_items
from ouzel.store.base import Store
from ouzel.wire.decode import decode_body
from ouzel.wire.model_name import ModelName
from ouzel.wire.options import check_generates, check_model
from ouzel.worker_threads import run_with_prerequisite


class CompactRequest(msgspec.Struct, kw_only=True):
    input: Input = None
    model: ModelName = None
    instructions: Annotated[
        str | None, Meta(description="Summarised with the input, as a system message before it.")
    ] = None
    previous_response_id: Annotated[
        str | None, Meta(description="The id of the stored response that the input continues.")
    ] = None
    prompt_cache_key: Annotated[
        str | None,
        Meta(
            description="A hint for routers, which send requests with the same key to one server."
        ),
    ] = None


class CompactedResponse(msgspec.Struct, frozen=True, tag_field="object", tag="response.compaction"):
    """The items for the client to continue with. The server does not store it."""

    id: str
    created_at: int
    output: list[msgspec.Raw | CompactionItem]
    usage: ResponseUsage


class CompactResponse:
    def __init__(self, summariser: Summariser, model: ServedModel, store: Store | None) -> None:
        self._summariser = summariser
        self._model = model
        self._store = store

    async def compact(self, request: Request, body: bytes) -> CompactedResponse:
        fields = decode_body(body, CompactRequest)
        check_model(fields.model, self._model)
        check_generates(self._model)
        exchange = get_exchange(request.scope)
        continuation = ResponsesRequest(
            model=self._model.names[0],
            input=fields.input,
            previous_response_id=fields.previous_response_id,
        )
        items = (await read_context(continuation, self._store, exchange.key_id)).items
        tools = KnownTools(refuses_unknown=self._model.refuses_unknown_tools)
        read = partial(
            read_messages,
            items,
            fields.instructions,
            tools,
            readable=self._model.renderer.readable,
        )
        messages = await run_with_prerequisite(partial(asyncio.to_thread, read))
        summary, usage = await self._summariser.summarise(
            messages,
            key_id=exchange.key_id,
            arrival_s=exchange.arrival_s,
            on_generation=exchange.log_generation,
        )
        users = [msgspec.Raw(item.body) for item in stored_items(filter(_is_users, items))]
        return CompactedResponse(
            new_id("resp", continues=fields.previous_response_id),
            int(time.time()),
            [*users, CompactionItem(new_id("cmp"), SUMMARY.pack(summary))],
            response_usage(usage),
        )


def _is_users(item: InputItem) -> bool:
    return item.fields.get("type") in (None, "message") and item.fields["role"] == "user"


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/responses/compact",
        prefixes=PREFIXES,
        summary="Replaces the answers of a conversation by a summary.",
        endpoint=lambda services: services.make_body_endpoint(
            CompactResponse(services.summariser, services.model, services.store).compact
        ),
        choice=choose_for("generate"),
        bodies=(CompactRequest,),
        answers=(CompactedResponse,),
    ),
)
