"""Collects tool calls: Ollama shows a call when it is complete, with its arguments as an object.

A call with other arguments, for example a call that was cut, becomes text of the answer.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from ouzel.generation import ToolCallDelta

Arguments = Annotated[msgspec.Raw, Meta(extra_json_schema={"type": "object"})]


class OllamaFunctionCall(msgspec.Struct):
    index: int
    name: str
    # JSON in one line, with numbers as the model wrote them
    arguments: Arguments


class OllamaToolCall(msgspec.Struct):
    id: str
    function: OllamaFunctionCall


class _TextOfCall(msgspec.Struct):
    name: str
    arguments: str


class ToolCalls:
    """Joins the pieces of tool calls, which arrive one call after the other."""

    def __init__(self) -> None:
        self._pieces: list[ToolCallDelta] = []  # pieces of one call

    def feed(self, delta: ToolCallDelta) -> OllamaToolCall | str | None:
        """Takes a piece. Returns the call before if the piece begins another call."""
        before = self.finish() if self._pieces and delta.index != self._pieces[0].index else None
        self._pieces.append(delta)
        return before

    def finish(self) -> OllamaToolCall | str | None:
        """Returns the complete call, its text if its arguments are no object, or None."""
        if not self._pieces:
            return None
        call_id = next((piece.id for piece in self._pieces if piece.id), "")
        name = next((piece.name for piece in self._pieces if piece.name), "")
        text = "".join(piece.arguments for piece in self._pieces)
        index, self._pieces = self._pieces[0].index, []
        arguments = _object(text.strip() or "{}")
        if arguments is None:
            return msgspec.json.encode(_TextOfCall(name, text)).decode()
        return OllamaToolCall(call_id, OllamaFunctionCall(index, name, arguments))


def _object(text: str) -> msgspec.Raw | None:
    try:
        in_one_line = msgspec.json.format(text, indent=-1)
    except (msgspec.DecodeError, RecursionError):
        return None
    return msgspec.Raw(in_one_line) if in_one_line.startswith("{") else None
