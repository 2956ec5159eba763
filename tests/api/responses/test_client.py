"""The official client works in every operation, synchronous and asynchronous, without warnings.

The tests check its objects strictly against its own types, because the client reads leniently.
"""

import inspect
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any  # either client: they have the same methods, awaited or not

import openai
import pydantic
import pytest
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import (
    CompactedResponse,
    InputTokenCountResponse,
    Response,
    ResponseStreamEvent,
)

from tests.api.requests import Json
from tests.api.responses.strict import strict_event, strict_response
from tests.api.responses.test_response import LOOK, SAYINGS
from tests.api.serving import RunningServer, running_server

TOOLS = [
    {**LOOK, "strict": False},
    {"type": "function", "name": "rest", "parameters": {}, "strict": False},
]
ENDS = ("response.completed", "response.incomplete", "response.failed")


@pytest.fixture(params=[openai.OpenAI, openai.AsyncOpenAI])
async def client(thinker: RunningServer, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    async with connect_client(request.param, thinker) as client:
        yield client


@asynccontextmanager
async def connect_client(kind: Any, server: RunningServer) -> AsyncIterator[Any]:
    client = kind(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    try:
        yield client
    finally:
        await resolve(client.close())


async def resolve(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


async def collect(entries: Any) -> list[Any]:
    return [entry async for entry in entries] if hasattr(entries, "__aiter__") else list(entries)


@asynccontextmanager
async def open_stream(stream: Any) -> AsyncIterator[Any]:
    if hasattr(stream, "__aenter__"):
        async with stream as following:
            yield following
    else:
        with stream as following:
            yield following


def build_body(said: str, **fields: object) -> Json:
    return {
        "model": "parrot",
        "input": [{"role": "user", "content": said}],
        "tools": TOOLS,
        **fields,
    }


def check_type(response: object) -> Response:
    """Checks that the client's response is exactly of the client's type, and returns it."""
    assert isinstance(response, Response)
    assert strict_response(response.to_json()) == Response.model_validate(response.to_dict())
    return response


def dump_unparsed(model: pydantic.BaseModel) -> Json:
    """Returns the fields of the client's object without the fields that the client parsed."""
    shown: Json = json.loads(model.model_dump_json(exclude_unset=True), object_hook=_drop_parsed)
    return shown


def _drop_parsed(given: Json) -> Json:
    return {
        name: value for name, value in given.items() if name not in ("parsed", "parsed_arguments")
    }


# Made


@pytest.mark.parametrize("saying", SAYINGS)
async def test_created_is_retrieved(client: Any, saying: str) -> None:
    created = check_type(await resolve(client.responses.create(**build_body(SAYINGS[saying]))))
    assert check_type(await resolve(client.responses.retrieve(created.id))) == created


@pytest.mark.parametrize("saying", [*SAYINGS, "-half a sent<|fail|>", "-<think>hm<|fail|>"])
@pytest.mark.parametrize(
    "fields", [{}, {"max_output_tokens": 40, "reasoning": {"summary": "auto"}}]
)
async def test_a_stream_folded_by_the_client_equals_the_retrieved_response(
    client: Any, saying: str, fields: Json
) -> None:
    stream = await resolve(
        client.responses.create(**build_body(SAYINGS.get(saying, saying), stream=True, **fields))
    )
    events = await collect(stream)
    for event in events:
        assert strict_event(event.type, event.to_json()).to_dict() == event.to_dict()

    folded = fold_with_client(events)

    assert dump_unparsed(folded) == dump_unparsed(
        await resolve(client.responses.retrieve(folded.id))
    )


def fold_with_client(events: list[Any]) -> Response:
    """Folds events with the client's accumulator; returns the response.

    The accumulator takes the output from the last event if it is there. The function removes it, so
    that the output comes from the events before.
    """
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=[], text_format=openai.omit)
    last = events[-1].model_copy(deep=True)
    assert last.type in ENDS
    output, last.response.output = last.response.output, None
    shown = [shown for event in [*events[:-1], last] for shown in state.handle_event(event)]
    for index, item in enumerate(output):
        so_far: Any = state._get_output_item(index)  # the accumulator made it of deltas
        if item.type == "message":
            assert [part.text for part in so_far.content] == [part.text for part in item.content]
        if item.type == "function_call":
            assert so_far.arguments == item.arguments
    folded = getattr(shown[-1], "response", None)
    assert isinstance(folded, Response)
    return folded


@pytest.mark.parametrize("saying", SAYINGS)
async def test_the_final_response_of_a_stream_equals_the_retrieved_response(
    client: Any, saying: str
) -> None:
    async with open_stream(client.responses.stream(**build_body(SAYINGS[saying]))) as stream:
        final = await resolve(stream.get_final_response())
    assert dump_unparsed(final) == dump_unparsed(
        check_type(await resolve(client.responses.retrieve(final.id)))
    )


class Owl(pydantic.BaseModel):
    name: str
    eats: list[str]


async def test_structured_output_is_parsed(client: Any) -> None:
    owl = Owl(name="Strix", eats=["mice"])
    said = {"model": "parrot", "input": owl.model_dump_json(), "text_format": Owl}
    parsed = await resolve(client.responses.parse(**said))
    async with open_stream(client.responses.stream(**said)) as stream:
        final = await resolve(stream.get_final_response())
    assert parsed.output_parsed == final.output_parsed == owl
    assert dump_unparsed(parsed) == dump_unparsed(
        check_type(await resolve(client.responses.retrieve(parsed.id)))
    )


# Read again


@pytest.mark.parametrize("after", [None, 0, 4])
async def test_a_stream_is_retrieved_from_any_event_on(client: Any, after: int | None) -> None:
    stream = await resolve(
        client.responses.create(**build_body(SAYINGS["reasoning, text and calls"], stream=True))
    )
    events: list[ResponseStreamEvent] = await collect(stream)
    assert events[0].type == "response.created"
    response_id = events[0].response.id
    start: Json = {} if after is None else {"starting_after": after}

    again = await collect(
        await resolve(client.responses.retrieve(response_id, stream=True, **start))
    )
    async with open_stream(client.responses.stream(response_id=response_id, **start)) as stream:
        final = await resolve(stream.get_final_response())

    assert again == events[0 if after is None else after + 1 :]
    assert dump_unparsed(final) == dump_unparsed(
        await resolve(client.responses.retrieve(response_id))
    )


async def test_input_items_come_in_pages(client: Any) -> None:
    first = await resolve(client.responses.create(**build_body(SAYINGS["calls"])))
    outputs = [
        {"type": "function_call_output", "call_id": item.call_id, "output": "Done."}
        for item in first.output
    ]
    second = await resolve(
        client.responses.create(**build_body("", input=outputs, previous_response_id=first.id))
    )

    listed = await collect(client.responses.input_items.list(second.id, limit=2, order="asc"))
    backwards = await collect(client.responses.input_items.list(second.id, limit=3))

    types = [
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert [item.type for item in listed] == types
    assert backwards == listed[::-1]
    assert [item.id for item in listed[1:3]] == [item.id for item in first.output]
    rest = client.responses.input_items.list(second.id, order="asc", after=listed[2].id)
    assert await collect(rest) == listed[3:]
    for item in listed:
        assert (
            type(item).model_validate_json(item.to_json(), strict=True) == item
            and not item.model_extra
        )


async def test_input_tokens_are_counted_as_a_response_counts_them(client: Any) -> None:
    counted = await resolve(client.responses.input_tokens.count(**build_body("How many?")))
    response = await resolve(client.responses.create(**build_body("How many?")))
    assert isinstance(counted, InputTokenCountResponse) and not counted.model_extra
    assert counted.input_tokens == response.usage.input_tokens


# Continued


async def test_a_conversation_is_compacted_and_goes_on(client: Any) -> None:
    said = [
        {"role": "user", "content": "I am Olga."},
        {"role": "assistant", "content": "Hello, Olga."},
    ]
    compacted = await resolve(client.responses.compact(model="parrot", input=said))
    assert isinstance(compacted, CompactedResponse) and not compacted.model_extra
    assert compacted.output[-1].type == "compaction"
    assert compacted.usage.total_tokens > 0
    # the client's type of the list has no messages of users, so it would warn
    shortened = [item.to_dict(warnings=False) for item in compacted.output]
    check_type(
        await resolve(
            client.responses.create(
                **build_body("", input=[*shortened, {"role": "user", "content": "And?"}])
            )
        )
    )


async def test_a_response_continues_another(client: Any) -> None:
    first = await resolve(client.responses.create(**build_body("Hello")))
    second = check_type(
        await resolve(client.responses.create(**build_body("And?", previous_response_id=first.id)))
    )
    assert second.previous_response_id == first.id
    assert second.usage.input_tokens > first.usage.total_tokens  # type: ignore[union-attr]


async def test_responses_are_made_in_a_conversation(client: Any) -> None:
    said = {"type": "message", "role": "user", "content": "I am Olga."}
    conversation = await resolve(client.conversations.create(items=[said], metadata={"of": "owls"}))
    first = check_type(
        await resolve(client.responses.create(**build_body("Hello", conversation=conversation.id)))
    )
    assert first.conversation is not None and first.conversation.id == conversation.id

    [added] = (await resolve(client.conversations.items.create(conversation.id, items=[said]))).data
    found = await resolve(
        client.conversations.items.retrieve(added.id, conversation_id=conversation.id)
    )
    assert found == added
    listed = await collect(client.conversations.items.list(conversation.id, limit=3, order="asc"))
    assert [item.role for item in listed] == ["user", "user", "assistant", "user"]
    assert listed[3] == added
    for item in listed:
        assert (
            type(item).model_validate_json(item.to_json(), strict=True) == item
            and not item.model_extra
        )

    await resolve(client.conversations.items.delete(added.id, conversation_id=conversation.id))
    changed = await resolve(client.conversations.update(conversation.id, metadata={"of": "cats"}))
    assert changed == await resolve(client.conversations.retrieve(conversation.id))
    assert changed.metadata == {"of": "cats"} and changed.created_at == conversation.created_at
    assert len(await collect(client.conversations.items.list(conversation.id))) == 3
    assert (await resolve(client.conversations.delete(conversation.id))).deleted
    with pytest.raises(openai.NotFoundError):
        await resolve(client.conversations.retrieve(conversation.id))


# Ended


async def test_a_background_response_is_followed_to_its_end(client: Any) -> None:
    queued = check_type(
        await resolve(client.responses.create(**build_body("Hello", background=True)))
    )
    assert queued.status in ("queued", "in_progress") and queued.background
    events = await collect(await resolve(client.responses.retrieve(queued.id, stream=True)))
    assert [event.type for event in events[:3]] == [
        "response.created",
        "response.queued",
        "response.in_progress",
    ]
    assert dump_unparsed(fold_with_client(events)) == dump_unparsed(
        await resolve(client.responses.retrieve(queued.id))
    )


async def test_a_background_response_is_streamed_from_the_beginning(client: Any) -> None:
    async with open_stream(
        client.responses.stream(**build_body("Hello", background=True))
    ) as stream:
        final = await resolve(stream.get_final_response())
    assert final.status == "completed" and final.background
    assert dump_unparsed(final) == dump_unparsed(await resolve(client.responses.retrieve(final.id)))


async def test_deleted_is_gone(client: Any) -> None:
    response = await resolve(client.responses.create(**build_body("Hello")))
    assert await resolve(client.responses.delete(response.id)) is None
    with pytest.raises(openai.NotFoundError) as caught:
        await resolve(client.responses.retrieve(response.id))
    assert response.id in caught.value.message


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    url = f"sqlite:///{tmp_path_factory.mktemp('slow')}/responses.sqlite3"
    with running_server({"step_s": 0.02}, store_url=url) as server:
        yield server


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
async def test_a_running_response_is_cancelled(slow: RunningServer, kind: Any) -> None:
    async with connect_client(kind, slow) as client:
        running = await resolve(
            client.responses.create(model="parrot", input="x" * 2000, background=True)
        )
        cancelled = check_type(await resolve(client.responses.cancel(running.id)))
        assert (cancelled.status, cancelled.id) == ("cancelled", running.id)
        events = await collect(await resolve(client.responses.retrieve(running.id, stream=True)))
        assert dump_unparsed(fold_with_client(events)) == dump_unparsed(cancelled)
        with pytest.raises(openai.BadRequestError):
            ended = await resolve(client.responses.create(model="parrot", input="x"))
            await resolve(client.responses.cancel(ended.id))
