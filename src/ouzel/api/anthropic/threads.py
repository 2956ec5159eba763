"""A message thread is a conversation that the server holds, so that each request brings only the messages of its turn.

    {"type": "create"}                                   messages is the whole conversation so far
    {"type": "continue", "previous_message_id": "msg_1"} messages is what follows the message msg_1

A conversation is held under the id of its newest message. It stays in this process's memory: when it is gone, after a
restart or for want of room, the client is told `thread_not_found` and sends the whole conversation again. `system` and
`tools` are held with it. A message that was continued is forgotten: its successor has the whole conversation.
"""

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.api.anthropic.errors import (
    ThreadAlreadyContinued,
    ThreadFingerprintMismatch,
    ThreadNotFound,
    ThreadUnsupported,
)
from ouzel.errors import InvalidRequest
from ouzel.wire.decode import JsonObject, parse_object
from ouzel.wire.validation_errors import shown
from ouzel.worker_threads import LONG_BODY_BYTES

_MAX_BYTES = 64 * 2**20  # for all conversations with a model and its adapters
_CONVERSATION_BYTES, _PART_BYTES = 1024, 128  # of memory, beside the JSON
_MAX_CONTINUED = 10_000  # ids of messages that are known to have been continued
_HELD_FIELDS = ("system", "tools")
_MESSAGE_PATH = re.compile(r"messages\[(\d+)\](.*)")
_WRITTEN_ID = re.compile(rb'"previous_message_id"\s*:\s*"(msg_[0-9a-f]+)"')
_MAX_SEARCHED_BYTES = 2**18  # a longer body is prepared among the longest anyway
_PREVIOUS = "thread.previous_message_id"


class ThreadCreate(msgspec.Struct, frozen=True, tag="create"):
    """The server holds the conversation."""


class ThreadContinue(msgspec.Struct, frozen=True, tag="continue"):
    previous_message_id: Annotated[
        str, Meta(description="The `id` of the message that `messages` follow.")
    ]


ThreadField = ThreadCreate | ThreadContinue | None


@dataclass(frozen=True, slots=True)
class HeldConversation:
    key_id: str | None  # of the API key that owns the conversation
    fixed: bytes  # `system` and `tools`, where the request had them, as JSON
    messages: tuple[bytes, ...]  # lists of messages as JSON, two of each turn

    @property
    def num_bytes(self) -> int:
        return (
            _CONVERSATION_BYTES
            + len(self.fixed)
            + sum(_PART_BYTES + len(part) for part in self.messages)
        )

    @property
    def num_messages(self) -> int:
        return len(self._decoded())

    def with_messages(self, messages: object) -> "HeldConversation":
        return replace(self, messages=(*self.messages, msgspec.json.encode(messages)))

    def body(self, fields: JsonObject) -> JsonObject:
        """Returns the body of the whole conversation. Raises ThreadFingerprintMismatch."""
        fixed = msgspec.json.decode(self.fixed, type=JsonObject)
        for name in _HELD_FIELDS:
            if fields.get(name) is not None and fields[name] != fixed.get(name):
                limit = "must be left out or be as it was when the thread was created"
                raise ThreadFingerprintMismatch(f"{limit}, given {shown(fields[name])}", field=name)
        messages = fields.get("messages")
        if not isinstance(messages, list):
            return fields  # reading the body refuses it
        return {**fields, **fixed, "messages": [*self._decoded(), *messages]}

    def _decoded(self) -> list[object]:
        return [
            message
            for part in self.messages
            for message in msgspec.json.decode(part, type=list[object])
        ]

    def extended(self, whole: JsonObject) -> "HeldConversation":
        """Returns the conversation with the messages of the turn, which come last in the body of the whole."""
        messages = whole["messages"]
        assert isinstance(messages, list)
        return self.with_messages(messages[self.num_messages :])


def continued_message_id(fields: JsonObject) -> str | None:
    """Returns the id of the message that a body continues; reading the body refuses other forms of the field."""
    thread = fields.get("thread")
    if not isinstance(thread, dict) or thread.get("type") != "continue":
        return None
    previous_id = thread.get("previous_message_id")
    return previous_id if isinstance(previous_id, str) else None


def _parse_id(body: bytes) -> str | None:
    try:
        return continued_message_id(parse_object(body))
    except InvalidRequest:
        return None  # reading the body refuses it


def _find_id(body: bytes) -> str | None:
    at = body.find(
        b'"previous_message_id"', 0, _MAX_SEARCHED_BYTES
    )  # several times as fast as the expression
    match = None if at < 0 else _WRITTEN_ID.search(body, at, _MAX_SEARCHED_BYTES)
    return None if match is None else match[1].decode()


def renumber_error(error: InvalidRequest, num_held: int) -> InvalidRequest:
    """Returns the error with the number of the message in the request, instead of its number in the conversation."""
    match = _MESSAGE_PATH.fullmatch(error.param or "")
    if match is None or int(match[1]) < num_held:
        return error
    return error.at(f"messages[{int(match[1]) - num_held}]{match[2]}")


def new_conversation(fields: JsonObject, key_id: str | None) -> HeldConversation:
    fixed = {name: fields[name] for name in _HELD_FIELDS if name in fields}
    return HeldConversation(key_id, msgspec.json.encode(fixed), ()).with_messages(
        fields["messages"]
    )


class HeldConversations:
    """Holds the newest conversations with a model and its adapters, within a bound.

    It is called from many threads.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._held: OrderedDict[str, HeldConversation] = (
            OrderedDict()
        )  # by message id, oldest first
        self._continued: OrderedDict[str, str | None] = (
            OrderedDict()
        )  # the key's id, by message id, oldest first
        self._lock = threading.Lock()

    def find(self, message_id: str, key_id: str | None) -> HeldConversation:
        """Raises ThreadNotFound and ThreadAlreadyContinued."""
        with self._lock:
            held = self._held.get(message_id)
            if held is not None and held.key_id == key_id:
                return held
            if self._continued.get(message_id, object()) == key_id:
                raise ThreadAlreadyContinued(
                    f"must be the newest message of its thread, given {shown(message_id)}: it was continued already",
                    field=_PREVIOUS,
                )
        raise ThreadNotFound(
            f"must be the id of a message that is held here, given {shown(message_id)}: send the whole conversation",
            field=_PREVIOUS,
        )

    def num_held_bytes(self, body: bytes) -> int:
        """Returns the size of the conversation that a body continues; 0 if it continues none.

        Long bodies are searched rather than parsed, since this is the event loop. They are prepared in other threads
        even if the id is not found.
        """
        message_id = _find_id(body) if len(body) > LONG_BODY_BYTES else _parse_id(body)
        with self._lock:
            held = None if message_id is None else self._held.get(message_id)
        return 0 if held is None else held.num_bytes

    def check_room(self, conversation: HeldConversation) -> None:
        """Raises ThreadUnsupported for a conversation that exceeds the bound by itself."""
        if conversation.num_bytes > self._max_bytes:
            limit = f"cannot be held for a conversation of more than {self._max_bytes} bytes"
            raise ThreadUnsupported(
                f"{limit}, given {conversation.num_bytes}: leave it out", field="thread"
            )

    def add(
        self, message_id: str, conversation: HeldConversation, *, previous_id: str | None
    ) -> None:
        with self._lock:
            self._held[message_id] = conversation
            self._num_bytes += conversation.num_bytes
            if previous_id is not None:
                self._forget(previous_id)
                self._continued[previous_id] = conversation.key_id
            while len(self._held) > 1 and self._num_bytes > self._max_bytes:
                self._forget(next(iter(self._held)))
            while len(self._continued) > _MAX_CONTINUED:
                self._continued.popitem(last=False)

    def _forget(self, message_id: str) -> None:
        held = self._held.pop(message_id, None)
        self._num_bytes -= 0 if held is None else held.num_bytes
