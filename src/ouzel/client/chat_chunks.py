"""Reads the chunks of a streamed chat completion, as OpenAI and other servers send them.

Servers differ: reasoning is `reasoning_content` or `reasoning`, or parts of the content (Mistral);
an error is an object, a text, or the whole chunk with the object "error".
"""

from typing import Any  # JSON

import msgspec


class ChatDelta(msgspec.Struct):
    """The pieces that a chunk adds to an answer."""

    content: str | list[msgspec.Raw] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[msgspec.Raw] | None = None

    def texts(self) -> tuple[str, str]:
        """Returns the new text of the answer and the new text of the reasoning."""
        content = self.content or self.refusal or ""
        if isinstance(content, list):
            return _join_parts(content)
        return content, self.reasoning_content or self.reasoning or ""


class ChatChoice(msgspec.Struct):
    delta: ChatDelta | None = None
    finish_reason: str | None = None


class ChatChunk(msgspec.Struct):
    """A chunk; `usage` stays JSON, because servers add fields of their own."""

    object: str | None = None
    choices: list[ChatChoice] | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")
    error: Any = None
    message: Any = None  # message of an error that is the whole chunk

    @property
    def choice(self) -> ChatChoice:
        """Returns the first choice; an empty one for a chunk without choices."""
        return self.choices[0] if self.choices else ChatChoice()

    @property
    def has_usage(self) -> bool:
        return bytes(self.usage) != b"null"

    @property
    def error_text(self) -> str:
        """Returns the message of an error; "" if the chunk is no error."""
        if self.error is not None:
            return read_error(self.error)
        if self.object == "error" or (self.message and not self.choices):
            return read_error(self.message)
        return ""


class _Thought(msgspec.Struct):
    text: str = ""


class _Part(msgspec.Struct):
    text: str = ""
    thinking: list[_Thought] = []


decode_chat_chunk = msgspec.json.Decoder(ChatChunk).decode
_decode_part = msgspec.json.Decoder(_Part).decode


def read_error(error: Any) -> str:
    """Returns the message of an error in a stream; the error may have any form."""
    message = error.get("message") if isinstance(error, dict) else error
    if isinstance(message, str) and message:
        return message
    return f"the server sent an error that gives no reason: {error}"


def _join_parts(parts: list[msgspec.Raw]) -> tuple[str, str]:
    """Returns the texts of the answer and of the reasoning, which is a part with parts itself."""
    decoded = [_decode_part(part) for part in parts]
    thoughts = [thought.text for part in decoded for thought in part.thinking]
    return "".join(part.text for part in decoded), "".join(thoughts)
