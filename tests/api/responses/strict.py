"""Checks answers against the official client's own types.

No key may be missing, no key may be unknown, and literals must be exact.
"""

import json
from collections.abc import Iterable

import httpx
import openai.types.responses as openai_types
import pydantic
from openai import BaseModel
from openai.types import VectorStore
from openai.types.conversations import Conversation, ConversationItem, ConversationItemList
from openai.types.responses import Response, ResponseStreamEvent, web_search_tool

from tests.api.requests import Json

# Keys that the types lack: OpenAI's own answers, OpenResponses, OpenVINO Model Server's events
# or Ouzel have them.
_BEYOND_THE_TYPES: dict[type[pydantic.BaseModel], set[str]] = {
    # `prompt_token_ids` and `token_ids` are fields of Ouzel.
    Response: {
        "store",
        "frequency_penalty",
        "presence_penalty",
        "prompt_token_ids",
        "token_ids",
    },
    openai_types.ResponseCustomToolCall: {"status"},
    openai_types.ResponseFunctionWebSearch: {"output", "sources"},
    web_search_tool.Filters: {"blocked_domains"},  # OpenAI's guide has them
    openai_types.ResponseFileSearchToolCall: {"output", "sources"},
    VectorStore: {"description"},  # the examples of OpenAI's reference have it
    openai_types.ResponseCodeInterpreterToolCall: {"output", "sources"},
    openai_types.ResponseFunctionShellToolCall: {"output", "sources"},
}
_ITEM: pydantic.TypeAdapter[ConversationItem] = pydantic.TypeAdapter(ConversationItem)
_EVENT: pydantic.TypeAdapter[ResponseStreamEvent] = pydantic.TypeAdapter(ResponseStreamEvent)


def strict_response(text: str) -> Response:
    response = Response.model_validate_json(text, strict=True)
    check(response)
    return response


def strict_conversation(text: str) -> Conversation:
    conversation = Conversation.model_validate_json(text, strict=True)
    check(conversation)
    return conversation


def strict_items(text: str) -> ConversationItemList:
    """Reads and checks a list of items that is not empty."""
    items = ConversationItemList.model_validate_json(text, strict=True)
    check(items)
    assert (items.first_id, items.last_id) == (items.data[0].id, items.data[-1].id)
    return items


def strict_item(text: str) -> ConversationItem:
    item = _ITEM.validate_json(text, strict=True)
    check(item)
    return item


def strict_events(answer: httpx.Response) -> list[ResponseStreamEvent]:
    """Reads the events of a whole stream; checks their types, their order and their ids."""
    events = [strict_event(name, data) for name, data in named_events(answer)]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    types = [event.type for event in events]
    if types[1] == "response.queued":
        del types[1]
    assert types[0] == "response.created"
    # a response that ended in the queue has no response.in_progress
    assert types[1] == "response.in_progress" or (len(types) == 2 < len(events))
    assert events[-1].type in ("response.completed", "response.incomplete", "response.failed")
    check_lives(events)
    return events


def strict_end(answer: httpx.Response) -> Response:
    """Returns the response in the last event of a stream, whose events are checked."""
    end = strict_events(answer)[-1]
    assert isinstance(
        end,
        openai_types.ResponseCompletedEvent
        | openai_types.ResponseIncompleteEvent
        | openai_types.ResponseFailedEvent,
    )
    return end.response


def strict_event(name: str, data: str) -> ResponseStreamEvent:
    event = _EVENT.validate_json(data, strict=True)
    assert event.type == name
    check(event, allowed={"obfuscation"} if name.endswith(".delta") else set())
    return event


def named_events(answer: httpx.Response) -> list[tuple[str, str]]:
    """Returns the name and data of each event; checks that the stream ends with [DONE]."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    *frames, done, nothing = answer.text.split("\n\n")
    assert (done, nothing) == ("data: [DONE]", "")
    # a frame that begins with a colon is a comment, which keeps the connection alive
    pairs = [frame.split("\n") for frame in frames if not frame.startswith(":")]
    return [(name.removeprefix("event: "), data.removeprefix("data: ")) for name, data in pairs]


def check_lives(events: Iterable[ResponseStreamEvent]) -> None:
    """Checks that each item is added, changed under one id and index, and then done."""
    ids: dict[int, str] = {}
    done: set[int] = set()
    for event in events:
        given = event.to_dict()
        if "output_index" not in given:
            continue
        index, item = given["output_index"], given.get("item")
        assert isinstance(index, int)
        item_id = item["id"] if isinstance(item, dict) else given["item_id"]
        if event.type == "response.output_item.added":
            assert index == len(ids)
            ids[index] = str(item_id)
        assert ids[index] == item_id
        assert index not in done
        if event.type == "response.output_item.done":
            done.add(index)
    assert done == ids.keys()
    assert len(set(ids.values())) == len(ids)


def remove_ids(response: BaseModel) -> Json:
    """Removes ids and times, which differ between two responses to the same request."""
    shown: Json = json.loads(response.to_json())
    for name in ("id", "created_at", "completed_at"):
        del shown[name]
    output = shown["output"]
    assert isinstance(output, list)
    for item in output:
        del item["id"]
        item.pop("call_id", None)
    return shown


def check(model: pydantic.BaseModel, *, allowed: set[str] | None = None) -> None:
    is_response = isinstance(model, openai_types.Response)
    # the client has such types for events of streams and of WebSockets
    is_of_arguments = "FunctionCallArguments" in type(model).__name__
    known = _BEYOND_THE_TYPES.get(type(model), {"call_id"} if is_of_arguments else set()) | (
        allowed or set()
    )
    unknown = set(model.model_extra or {}) - known
    assert not unknown, f"{type(model).__name__} has no {unknown}"
    if is_response:
        missing = set(type(model).model_fields) - model.model_fields_set
        assert not missing, f"a response has {missing}"
    for name in model.model_fields_set & set(type(model).model_fields):
        _check_inside(getattr(model, name))


def _check_inside(value: object) -> None:
    if isinstance(value, pydantic.BaseModel):
        check(value)
    elif isinstance(value, list):
        for entry in value:
            _check_inside(entry)
