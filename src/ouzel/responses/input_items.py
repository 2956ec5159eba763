"""Converts the input items of a response to chat messages.

1.  A model writes reasoning, text and function calls in one turn, as several items. Items of these
    types in a row become one assistant message. The output of this server, sent back, therefore
    becomes the same messages.
2.  User messages before and after a summary (`compaction`) join with the summary into one message,
    because many templates refuse two user messages in a row.
3.  An error names the field by its path, such as `input[2].content[0].type`.
"""

import logging
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import groupby

from ouzel.errors import InvalidRequest
from ouzel.generation import TEXT_ONLY, ReadableMedia, require_files
from ouzel.responses.call_history import CALL_TYPES, HOSTED_TYPES, OUTPUT_TYPES, CallHistory
from ouzel.responses.hosted.item_base import ToolExchange
from ouzel.responses.hosted.items import AnyHostedItem, read_hosted_item
from ouzel.responses.hosted.mcp import McpApprovalRequest, McpApprovalResponse
from ouzel.responses.hosted.shell import ShellCall, ShellCallOutput
from ouzel.responses.item_fields import (
    MEDIA,
    SOUND,
    TEXT_KEYS,
    Message,
    invalid_value,
    list_files,
    read_content,
    read_texts,
    require_name,
    require_object,
)
from ouzel.responses.items.call_ids import complete_call_ids
from ouzel.responses.items.compaction_item import text_for_model
from ouzel.responses.items.message_content import Media, add_media, join_content, list_media
from ouzel.responses.items.packed_text import CONTEXT, REASONING, SUMMARY
from ouzel.wire.newest_turns import num_leading
from ouzel.wire.offered_tools import NO_TOOLS, ToolNames

logger = logging.getLogger(__name__)

_ROLES = ("user", "assistant", "system", "developer")
_STATUSES = (None, "in_progress", "completed", "incomplete")
_ITEM_TYPES = ("message", *CALL_TYPES, *OUTPUT_TYPES, "reasoning", "compaction")


@dataclass(frozen=True, slots=True)
class KnownTools:
    """The tools of the request; the input may also have calls of tools not offered now."""

    names: ToolNames = NO_TOOLS
    refuses_unknown: bool = False  # refuse items of hosted tools (`HOSTED_TYPES`)


NO_KNOWN_TOOLS = KnownTools()


@dataclass(frozen=True, slots=True)
class InputMessage:
    fields: Message
    path: str  # path of the (first) item of the message in the request


@dataclass(frozen=True, slots=True)
class InputItem:
    fields: Message
    path: str  # path in the request, or the field that refers to the item
    num_stored_bytes: int = 0  # bytes of a stored item; 0 for an item of the request


def read_input(value: object) -> list[InputItem]:
    """Reads the value of the field `input`; a string is one user message.

    Raises InvalidRequest unless `value` is a non-empty string or a non-empty list of objects.
    """
    if isinstance(value, str):
        if not value:
            raise invalid_value("input", "a non-empty string", value)
        return [InputItem({"role": "user", "content": value}, "input")]
    if not isinstance(value, list) or not value:
        raise invalid_value("input", "a string or a non-empty list of items", value)
    return read_items(value, "input")


def read_items(values: Sequence[object], field: str) -> list[InputItem]:
    """Reads the items of the list `field`. Raises InvalidRequest for a value that is no object."""
    paths = [f"{field}[{position}]" for position in range(len(values))]
    objects = complete_call_ids(
        [require_object(item, path) for item, path in zip(values, paths, strict=True)]
    )
    return [InputItem(item, path) for item, path in zip(objects, paths, strict=True)]


def referenced_id(item: InputItem) -> str | None:
    """Returns the id of the stored item that an `item_reference` names; None for other items."""
    fields = item.fields
    is_short_form = fields.get("type") is None and "role" not in fields and "id" in fields
    if fields.get("type") != "item_reference" and not is_short_form:
        return None
    return require_name(fields, "id", item.path)


def read_messages(
    items: Iterable[InputItem],
    instructions: str | None,
    tools: KnownTools = NO_KNOWN_TOOLS,
    *,
    readable: ReadableMedia = TEXT_ONLY,
) -> list[InputMessage]:
    """Converts input items to chat messages; `instructions` become the first system message.

    Raises InvalidRequest for an item that cannot be shown to the model, and FilesNeeded for
    uploaded files.
    """
    items = list(items)
    if named := [file for item in items for file in list_files(item.fields, item.path)]:
        require_files(named)
    reader = _Reader(
        []
        if instructions is None
        else [InputMessage({"role": "system", "content": instructions}, "instructions")],
        tools,
        readable=readable,
    )
    for item in items:
        reader.read(item.fields, item.path)
    return reader.finish()


@dataclass(slots=True)
class _Turn:
    """The items of one assistant message: reasoning, text and calls."""

    path: str
    reasoning: list[str] = field(default_factory=list)
    content: object = None  # None until the turn has text
    calls: list[Message] = field(default_factory=list)
    outputs: list[InputMessage] = field(default_factory=list)  # results of calls run by a server

    def message(self) -> Message:
        message: Message = {
            "role": "assistant",
            "content": "" if self.content is None else self.content,
        }
        if self.reasoning:
            message["reasoning_content"] = "\n".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = self.calls
        return message


class _Reader:
    def __init__(
        self, messages: list[InputMessage], tools: KnownTools, *, readable: ReadableMedia
    ) -> None:
        self._messages = messages
        self._readable = readable
        self._turn: _Turn | None = None
        self._calls = CallHistory(tools.names, readable=readable)
        self._refuses_unknown = tools.refuses_unknown
        # Type of the items that are left out -> path of the first such item.
        self._hosted: dict[str, str] = {}
        self._requests: dict[str, McpApprovalRequest] = {}  # approval requests by id
        self._shell_calls: dict[str, ShellCall] = {}  # calls without a text, by call id
        self._unreadable: list[str] = []  # paths of reasoning that another server has encrypted
        self._summaries: set[int] = set()  # positions of the messages that are summaries

    def finish(self) -> list[InputMessage]:
        self._end_turn()
        if self._unreadable:
            logger.info(
                "input items left out, reasoning that another server has encrypted: %s",
                ", ".join(self._unreadable[:20]),
            )
        if self._hosted and not self._messages:
            kind, path = next(iter(self._hosted.items()))
            raise _unknown_type(kind, path)
        if self._hosted:
            logger.info(
                "input items left out, calls of tools that another server has run: %s",
                ", ".join(self._hosted),
            )
        return (
            _join_summaries(self._summaries, self._messages) if self._summaries else self._messages
        )

    def read(self, item: Message, path: str) -> None:
        kind = "message" if item.get("type") is None else item["type"]
        hosted = read_hosted_item(item) if kind in HOSTED_TYPES else None
        if hosted is not None and self._read_hosted(hosted, path):
            return
        if kind in HOSTED_TYPES and (hosted is not None or not self._refuses_unknown):
            self._hosted.setdefault(str(kind), path)
            return
        if kind not in _ITEM_TYPES:
            raise _unknown_type(kind, path)
        if item.get("status") not in _STATUSES:
            raise invalid_value(
                f"{path}.status", f"one of {', '.join(_STATUSES[1:])}", item["status"]
            )
        match kind:
            case "message":
                self._read_message(item, path)
            case "reasoning":
                self._read_reasoning(item, path)
            case "compaction":
                self._read_compaction(item, path)
            case _ if kind in CALL_TYPES:
                self._open_turn(path).calls.append(self._calls.call(item, path))
            case _:
                message = self._calls.output(item, path)
                self._end_turn()
                self._messages.append(InputMessage(message, path))

    def _read_message(self, item: Message, path: str) -> None:
        role = item.get("role")
        if role not in _ROLES:
            raise invalid_value(f"{path}.role", f"one of {', '.join(_ROLES)}", role)
        kinds = tuple(TEXT_KEYS) if role == "assistant" else (*TEXT_KEYS, *MEDIA, SOUND)
        content = read_content(
            item.get("content"), f"{path}.content", kinds, readable=self._readable
        )
        if role != "assistant":
            self._end_turn()
            self._messages.append(InputMessage({"role": role, "content": content}, path))
            return
        if self._turn is not None and self._turn.content is not None:
            self._end_turn()
        self._open_turn(path).content = content

    def _read_reasoning(self, item: Message, path: str) -> None:
        if self._turn is not None and (self._turn.content is not None or self._turn.calls):
            self._end_turn()
        content = read_texts(item, "content", "reasoning_text", path)
        summary = read_texts(item, "summary", "summary_text", path)
        encrypted = item.get("encrypted_content")
        if encrypted is not None and not isinstance(encrypted, str):
            raise invalid_value(f"{path}.encrypted_content", "a string", encrypted)
        texts = content or encrypted_reasoning(item) or summary
        if texts:
            self._open_turn(path).reasoning += texts
        elif encrypted:
            self._unreadable.append(path)

    def _read_compaction(self, item: Message, path: str) -> None:
        packed = require_name(item, "encrypted_content", path)
        summary, context = SUMMARY.unpack(packed), CONTEXT.unpack(packed)
        if summary is None and context is None:
            raise invalid_value(
                f"{path}.encrypted_content",
                "the unchanged encrypted_content of a compaction item of this server",
                packed,
            )
        self._end_turn()
        content: object = None if summary is None else text_for_model(summary)
        if context is not None:
            # The packed text repeats the text of the last user message, but not its media.
            content = add_media(context, self._last_media())
            self._forget()
        self._summaries.add(len(self._messages))
        self._messages.append(InputMessage({"role": "user", "content": content}, path))

    def _read_hosted(self, hosted: AnyHostedItem, path: str) -> bool:
        """Reads an item of a tool that a server runs; returns False if it lacks its result."""
        if isinstance(hosted, McpApprovalRequest):
            self._requests[hosted.id] = hosted
        exchange = hosted.exchange()
        if isinstance(hosted, McpApprovalResponse):
            request = self._requests.get(hosted.approval_request_id)
            if request is None:
                raise invalid_value(
                    f"{path}.approval_request_id",
                    "the id of an mcp_approval_request before it",
                    hosted.approval_request_id,
                )
            exchange = None if hosted.approve else request.refuse(hosted.reason)
        if isinstance(hosted, ShellCall) and exchange is None:
            self._shell_calls[hosted.call_id] = hosted
        if isinstance(hosted, ShellCallOutput):
            call = self._shell_calls.pop(hosted.call_id, None)
            exchange = None if call is None else call.answer(hosted.text())
        if exchange is not None:
            self._read_exchange(exchange, path)
        return exchange is not None or hosted.is_silent

    def _read_exchange(self, exchange: ToolExchange, path: str) -> None:
        """Reads a call that a server has run, together with its result.

        Such a call ends its turn, unless the turn has calls whose outputs come from the client.
        """
        turn = self._open_turn(path)
        call, output = self._calls.exchange(exchange)
        turn.calls.append(call)
        turn.outputs.append(InputMessage(output, path))
        if len(turn.calls) == len(turn.outputs):
            self._end_turn()

    def _last_media(self) -> list[Media]:
        users = (each.fields for each in reversed(self._messages) if each.fields["role"] == "user")
        last = next(users, None)
        return [] if last is None else list_media(last)

    def _forget(self) -> None:
        """Drops all messages after the leading system messages; the compaction replaces them."""
        del self._messages[count_leading(self._messages) :]
        self._calls.forget()
        self._summaries.clear()

    def _open_turn(self, path: str) -> _Turn:
        if self._turn is None:
            self._turn = _Turn(path)
        return self._turn

    def _end_turn(self) -> None:
        if self._turn is not None:
            self._messages.append(InputMessage(self._turn.message(), self._turn.path))
            self._messages += self._turn.outputs
            self._turn = None


def encrypted_reasoning(item: Message) -> list[str]:
    """Unpacks the `encrypted_content` of a reasoning item; empty if another server packed it."""
    encrypted = item.get("encrypted_content")
    text = REASONING.unpack(encrypted) if isinstance(encrypted, str) else None
    return [] if text is None else [text]


def count_leading(messages: Iterable[InputMessage]) -> int:
    """Counts the system messages before the first message with another role."""
    return num_leading(each.fields["role"] for each in messages)


def _unknown_type(kind: object, path: str) -> InvalidRequest:
    return invalid_value(f"{path}.type", f"one of {', '.join(_ITEM_TYPES)}", kind)


def _join_summaries(summaries: Set[int], messages: Sequence[InputMessage]) -> list[InputMessage]:
    """Joins each row of consecutive user messages that has a summary into one message."""
    result: list[InputMessage] = []
    for role, run in groupby(
        range(len(messages)), key=lambda position: messages[position].fields["role"]
    ):
        positions = list(run)
        in_a_row = [messages[position] for position in positions]
        if role == "user" and not summaries.isdisjoint(positions):
            content = join_content([each.fields for each in in_a_row])
            result.append(InputMessage({"role": "user", "content": content}, in_a_row[0].path))
        else:
            result += in_a_row
    return result
