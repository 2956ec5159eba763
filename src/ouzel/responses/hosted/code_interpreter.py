"""Defines the item of a run of Python code, and its events."""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from ouzel.responses.event_base import ItemEvent, Place, ResponseEvent
from ouzel.responses.hosted.item_base import HostedItem, ToolExchange

PYTHON = "python"  # name of the function by which the model calls the tool


class CodeLogs(msgspec.Struct, frozen=True, tag_field="type", tag="logs"):
    logs: str


class CodeImage(msgspec.Struct, frozen=True, tag_field="type", tag="image"):
    url: str  # a data URL


class CodeInterpreterCall(HostedItem, frozen=True, kw_only=True, tag="code_interpreter_call"):
    id_prefix = "ci"
    kind = "code_interpreter"

    code: str | None
    container_id: str
    outputs: list[CodeLogs | CodeImage] | None = None  # only if the request includes them
    status: Literal["in_progress", "completed", "incomplete", "interpreting", "failed"]

    @property
    def is_running(self) -> bool:
        return self.status in ("in_progress", "interpreting")

    @property
    def is_failed(self) -> bool:
        return self.status == "failed"

    def called_name(self) -> tuple[str, str | None]:
        return PYTHON, None

    def exchange(self) -> ToolExchange | None:
        text = self.output
        if not isinstance(text, str):  # another server has run the code
            logs = [each.logs for each in self.outputs or () if isinstance(each, CodeLogs)]
            if not logs:
                return None
            text = "\n".join(logs)
        arguments = msgspec.json.encode({"code": self.code or ""}).decode()
        return ToolExchange(PYTHON, None, arguments, text)

    def fail(self, reason: str) -> "CodeInterpreterCall":
        return replace(self, status="failed", output=reason)

    def opening_events(self, place: Place) -> Iterator[ResponseEvent]:
        code = self.code or ""
        yield CodeInProgress(*place.next())
        yield CodeDelta(*place.next(), delta=code)
        yield CodeDone(*place.next(), code=code)
        yield CodeInterpreting(*place.next())

    def closing_events(self, place: Place) -> Iterator[ResponseEvent]:
        yield CodeCompleted(*place.next())


class CodeInProgress(
    ItemEvent, frozen=True, kw_only=True, tag="response.code_interpreter_call.in_progress"
):
    pass


class CodeDelta(
    ItemEvent, frozen=True, kw_only=True, tag="response.code_interpreter_call_code.delta"
):
    delta: str


class CodeDone(
    ItemEvent, frozen=True, kw_only=True, tag="response.code_interpreter_call_code.done"
):
    code: str


class CodeInterpreting(
    ItemEvent, frozen=True, kw_only=True, tag="response.code_interpreter_call.interpreting"
):
    pass


class CodeCompleted(
    ItemEvent, frozen=True, kw_only=True, tag="response.code_interpreter_call.completed"
):
    pass


EVENTS: tuple[type[ResponseEvent], ...] = (
    CodeInProgress,
    CodeDelta,
    CodeDone,
    CodeInterpreting,
    CodeCompleted,
)
