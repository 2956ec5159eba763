"""Prints one answer, so that the program can be used in pipes."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ouzel.client.base import ApiFailure
from ouzel.terminal.harmless import harmless, harmless_json
from ouzel.terminal_chat.answer import Answer
from ouzel.terminal_chat.chat_api import ChatApi
from ouzel.terminal_chat.response_answer import ResponseAnswer

if TYPE_CHECKING:
    from ouzel.terminal_chat.answer_view import AnswerView


@dataclass(frozen=True, slots=True)
class Form:
    """Selects the form in which an answer is printed."""

    is_json: bool  # print one object with content, reasoning, tool calls and usage
    has_schema: bool  # the content must be JSON


def print_answer(api: ChatApi, body: Mapping[str, object], form: Form) -> None:
    """Requests an answer and prints it. Raises ApiFailure if the answer is incomplete."""
    if form.is_json or form.has_schema:
        answer = _whole_answer(api, body)
        if form.has_schema:
            _check_json(answer)
        encoded = _object(answer) if form.is_json else answer.content.encode()
        sys.stdout.write(harmless_json(encoded) + "\n")
    elif sys.stdout.isatty() and (view := _make_view()):
        _draw(api, body, view)
    else:
        _write(api, body)


def _make_view() -> "AnswerView | None":
    """Returns a view that draws Markdown, or None if the packages for terminals are missing."""
    try:
        from ouzel.terminal_chat.answer_view import AnswerView  # noqa: PLC0415  slow to import
        from ouzel.terminal_chat.terminal import make_terminal  # noqa: PLC0415
    except ModuleNotFoundError:
        return None
    return AnswerView(make_terminal().console, is_markdown=True)


def _whole_answer(api: ChatApi, body: Mapping[str, object]) -> Answer:
    with api.answer(body) as stream:
        for _ in stream:
            pass
    return stream.answer


def _check_json(answer: Answer) -> None:
    """Raises ApiFailure if the content is not JSON, for example because the answer was cut."""
    try:
        msgspec.json.decode(answer.content)
    except msgspec.DecodeError as error:
        reason = str(error)
        if answer.finish_reason != "stop":
            reason = f"it ended early ({answer.finish_reason})"
        raise ApiFailure(f"the answer is not valid JSON: {reason}") from error


def _object(answer: Answer) -> bytes:
    shown: dict[str, object] = {
        "content": answer.content or None,
        "reasoning": answer.reasoning or None,
        "tool_calls": [call.on_the_wire() for call in answer.tool_calls],
        "usage": answer.usage_json,
        "finish_reason": answer.finish_reason,
    }
    if isinstance(answer, ResponseAnswer):
        shown["items"] = answer.items
    return msgspec.json.encode(shown)


def _draw(api: ChatApi, body: Mapping[str, object], view: "AnswerView") -> None:
    try:
        with api.answer(body) as stream:
            for piece in stream:
                view.show(piece)
    except BaseException:
        view.break_off()
        raise
    view.finish(stream.answer)


def _write(api: ChatApi, body: Mapping[str, object]) -> None:
    """Writes the content only, and a line end if the content has none."""
    last = "\n"
    with api.answer(body) as stream:
        for piece in stream:
            if piece.content:
                sys.stdout.write(harmless(piece.content))
                sys.stdout.flush()
                last = piece.content[-1]
    if last != "\n":
        sys.stdout.write("\n")
    if stream.answer.finish_reason == "length":
        sys.stderr.write("ouzel: the answer ends early: max_tokens or the context is used up\n")
