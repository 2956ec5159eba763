"""Message threads: conversations to which each request adds only the messages of its turn.

    {"type": "create"}                                   messages is the whole conversation so far
    {"type": "continue", "previous_message_id": "msg_1"} messages follow the message msg_1

Rules
1. A conversation is held in memory under the id of its newest message, with `system` and `tools`.
2. After a restart, or for lack of room, the client gets `thread_not_found` and sends the whole
   conversation again.
3. A message that was continued is forgotten: its successor has the whole conversation.
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
from ouzel.wire.validation_errors import show_value
from ouzel.worker_threads import LONG_BODY_BYTES

# limit for all conversations with a model and its adapters
_MAX_BYTES = 64 * 2**20
_CONVERSATION_BYTES, _PART_BYTES = 1024, 128  # memory beside the JSON
# limit for the ids of messages that were continued
_MAX_CONTINUED = 10_000
_HELD_FIELDS = ("system", "tools")
_MESSAGE_PATH = re.compile(r"messages\[(\d+)\](.*)")
_WRITTEN_ID = re.compile(rb'"previous_message_id"\s*:\s*"(msg_[0-9a-f]+)"')
# A longer body is prepared on the threads for long bodies anyway.
_MAX_SEARCHED_BYTES = 2**18
_PREVIOUS = "thread.previous_message_id"


class ThreadCreate(msgspec.Struct, frozen=True, tag="create"):
    """Asks the server to hold the conversation."""


class ThreadContinue(msgspec.Struct, frozen=True, tag="continue"):
    previous_message_id: Annotated[
        str, Meta(description="The `id` of the message that `messages` follow.")
    ]


ThreadField = ThreadCreate | ThreadContinue | None


@dataclass(frozen=True, slots=True)
class HeldConversation:
    key_id: str | None  # id of the API key that owns the conversation
    fixed: bytes  # `system` and `tools` of the request as JSON
    messages: tuple[bytes, ...]  # lists of messages as JSON, two for each turn

    @property
    def num_bytes(self) -> int:
        return (
            _CONVERSATION_BYTES
            + len(self.fixed)
            + sum(_PART_BYTES + len(part) for part in self.messages)
        )

    @property
    def num_messages(self) -> int:
        return len(self._decode())

    def with_messages(self, messages: object) -> "HeldConversation":
        return replace(self, messages=(*self.messages, msgspec.json.encode(messages)))

    def body(self, fields: JsonObject) -> JsonObject:
        """Returns the body of the whole conversation.

        Raises ThreadFingerprintMismatch if `system` or `tools` differ.
        """
        fixed = msgspec.json.decode(self.fixed, type=JsonObject)
        for name in _HELD_FIELDS:
            if fields.get(name) is not None and fields[name] != fixed.get(name):
                limit = "must be left out or be the same as at the thread's creation"
                raise ThreadFingerprintMismatch(
                    f"{limit}, given {show_value(fields[name])}", field=name
                )
        messages = fields.get("messages")
        if not isinstance(messages, list):
            return fields  # the decoder refuses this body
        return {**fields, **fixed, "messages": [*self._decode(), *messages]}

    def _decode(self) -> list[object]:
        return [
            message
            for part in self.messages
            for message in msgspec.json.decode(part, type=list[object])
        ]

    def extend(self, whole: JsonObject) -> "HeldConversation":
        """Adds the messages of the turn, which are the last messages of the whole body."""
        messages = whole["messages"]
        assert isinstance(messages, list)
        return self.with_messages(messages[self.num_messages :])


def find_continued_id(fields: JsonObject) -> str | None:
    """Returns the id of the message that a body continues, or None.

    The decoder refuses other forms of the field.
    """
    thread = fields.get("thread")
    if not isinstance(thread, dict) or thread.get("type") != "continue":
        return None
    previous_id = thread.get("previous_message_id")
    return previous_id if isinstance(previous_id, str) else None


def _parse_id(body: bytes) -> str | None:
    try:
        return find_continued_id(parse_object(body))
    except InvalidRequest:
        return None  # the decoder refuses this body


def _find_id(body: bytes) -> str | None:
    # several times as fast as the regular expression
    at = body.find(b'"previous_message_id"', 0, _MAX_SEARCHED_BYTES)
    match = None if at < 0 else _WRITTEN_ID.search(body, at, _MAX_SEARCHED_BYTES)
    return None if match is None else match[1].decode()


def renumber_error(error: InvalidRequest, num_held: int) -> InvalidRequest:
    """Returns the error with the message's number in the request, not in the conversation."""
    match = _MESSAGE_PATH.fullmatch(error.param or "")
    if match is None or int(match[1]) < num_held:
        return error
    return error.at(f"messages[{int(match[1]) - num_held}]{match[2]}")


def start_conversation(fields: JsonObject, key_id: str | None) -> HeldConversation:
    fixed = {name: fields[name] for name in _HELD_FIELDS if name in fields}
    return HeldConversation(key_id, msgspec.json.encode(fixed), ()).with_messages(
        fields["messages"]
    )


class HeldConversations:
    """The newest conversations with a model and its adapters, within a limit of bytes.

    Many threads call it.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        # conversations by message id, oldest first
        self._held: OrderedDict[str, HeldConversation] = OrderedDict()
        # ids of API keys by message id, oldest first
        self._continued: OrderedDict[str, str | None] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, message_id: str, key_id: str | None) -> HeldConversation:
        """Returns the conversation that ends with a message.

        Raises ThreadNotFound and ThreadAlreadyContinued.
        """
        with self._lock:
            held = self._held.get(message_id)
            if held is not None and held.key_id == key_id:
                return held
            if self._continued.get(message_id, object()) == key_id:
                raise ThreadAlreadyContinued(
                    f"must be the newest message of its thread, given {show_value(message_id)}: "
                    "it was continued already",
                    field=_PREVIOUS,
                )
        raise ThreadNotFound(
            f"must be the id of a message that is held here, given {show_value(message_id)}: "
            "send the whole conversation",
            field=_PREVIOUS,
        )

    def num_held_bytes(self, body: bytes) -> int:
        """Returns the size of the conversation that a body continues; 0 if it continues none.

        Long bodies are searched, not parsed, because this runs on the event loop. They are prepared
        on other threads even if the id is not found.
        """
        message_id = _find_id(body) if len(body) > LONG_BODY_BYTES else _parse_id(body)
        with self._lock:
            held = None if message_id is None else self._held.get(message_id)
        return 0 if held is None else held.num_bytes

    def check_room(self, conversation: HeldConversation) -> None:
        """Raises ThreadUnsupported if a conversation alone exceeds the limit."""
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
