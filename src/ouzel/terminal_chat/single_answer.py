"""One answer is printed, so that the program works in pipes."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from rich.console import Console

from ouzel.client.base import ApiFailure
from ouzel.terminal.harmless import harmless, harmless_json
from ouzel.terminal_chat.answer import Answer
from ouzel.terminal_chat.answer_view import AnswerView
from ouzel.terminal_chat.chat_api import ChatApi


@dataclass(frozen=True, slots=True)
class Form:
    """How an answer is printed."""

    is_json: bool  # one object with all there is of the answer
    has_schema: bool  # the content is JSON


def print_answer(api: ChatApi, body: Mapping[str, object], form: Form, console: Console) -> None:
    """Raises ApiFailure where there is no whole answer."""
    if form.is_json or form.has_schema:
        answer = _whole_answer(api, body)
        if form.has_schema:
            _check_json(answer)
        encoded = _object(answer) if form.is_json else answer.content.encode()
        sys.stdout.write(harmless_json(encoded) + "\n")
    elif console.is_terminal:
        _draw(api, body, console)
    else:
        _write(api, body)


def _whole_answer(api: ChatApi, body: Mapping[str, object]) -> Answer:
    with api.answer(body) as stream:
        for _ in stream:
            pass
    return stream.answer


def _check_json(answer: Answer) -> None:
    """The server's grammar makes it JSON, unless the answer ends before it is whole."""
    try:
        msgspec.json.decode(answer.content)
    except msgspec.DecodeError as error:
        reason = (
            f"it ended early ({answer.finish_reason})"
            if answer.finish_reason != "stop"
            else str(error)
        )
        raise ApiFailure(f"the answer is not the JSON that was asked for: {reason}") from error


def _object(answer: Answer) -> bytes:
    return msgspec.json.encode(
        {
            "content": answer.content or None,
            "reasoning": answer.reasoning or None,
            "tool_calls": [call.on_the_wire() for call in answer.tool_calls],
            "usage": answer.usage_json,
            "finish_reason": answer.finish_reason,
        }
    )


def _draw(api: ChatApi, body: Mapping[str, object], console: Console) -> None:
    view = AnswerView(console, is_markdown=True)
    try:
        with api.answer(body) as stream:
            for piece in stream:
                view.show(piece)
    except BaseException:
        view.break_off()
        raise
    view.finish(stream.answer)


def _write(api: ChatApi, body: Mapping[str, object]) -> None:
    """Writes the content alone, with a line end behind it."""
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
