"""Defines the items of shell commands: calls and their outputs.

Commands run in a container of this server, or on the computer of the client (`local`). A client
answers a local call with an output item, as it answers a call of a function.
"""

from typing import Literal

import msgspec
from msgspec.structs import replace

from ouzel.responses.hosted.item_base import HostedItem, ToolExchange

SHELL = "shell"  # name of the function by which the model calls the tool


class ShellAction(msgspec.Struct, frozen=True):
    commands: list[str]
    timeout_ms: int | None = None
    max_output_length: int | None = None  # characters of one command's output


class LocalEnvironment(msgspec.Struct, frozen=True, tag_field="type", tag="local"):
    pass


class ContainerReference(msgspec.Struct, frozen=True, tag_field="type", tag="container_reference"):
    container_id: str


class Exited(msgspec.Struct, frozen=True, tag_field="type", tag="exit"):
    exit_code: int


class TimedOut(msgspec.Struct, frozen=True, tag_field="type", tag="timeout"):
    pass


class ShellOutput(msgspec.Struct, frozen=True):
    """The outputs of one command."""

    outcome: Exited | TimedOut
    stdout: str
    stderr: str

    def text(self) -> str:
        """Returns the output as the model reads it."""
        match self.outcome:
            case Exited(0):
                end = ""
            case Exited(code):
                end = f"[exit code {code}]"
            case TimedOut():
                end = "[The command was ended after its time.]"
        parts = [self.stdout.rstrip("\n"), self.stderr.rstrip("\n"), end]
        return "\n".join(part for part in parts if part)


class ShellCall(HostedItem, frozen=True, kw_only=True, tag="shell_call"):
    id_prefix = "sh"
    kind = "shell"

    id: str = ""
    call_id: str
    action: ShellAction
    environment: LocalEnvironment | ContainerReference | None = None
    status: Literal["in_progress", "completed", "incomplete"] = "completed"

    @property
    def is_local(self) -> bool:
        return not isinstance(self.environment, ContainerReference)

    @property
    def is_running(self) -> bool:
        return self.status == "in_progress" and not self.is_local

    @property
    def is_failed(self) -> bool:
        return self.status == "incomplete"

    @property
    def is_silent(self) -> bool:
        """Tells that the model reads the call with its output, which is an item of its own."""
        return not isinstance(self.output, str)

    @property
    def waits_for_client(self) -> bool:
        return self.is_local and self.output is msgspec.UNSET

    def called_name(self) -> tuple[str, str | None]:
        return SHELL, None

    def exchange(self) -> ToolExchange | None:
        return self.answer(self.output) if isinstance(self.output, str) else None

    def answer(self, output: str) -> ToolExchange:
        """Returns the call as the model reads it, with its output."""
        given = {
            name: value
            for name, value in msgspec.to_builtins(self.action).items()
            if value is not None
        }
        return ToolExchange(SHELL, None, msgspec.json.encode(given).decode(), output)

    def fail(self, reason: str) -> "ShellCall":
        return replace(self, status="incomplete", output=reason)


class ShellCallOutput(HostedItem, frozen=True, kw_only=True, tag="shell_call_output"):
    id_prefix = "sho"
    kind = "shell"

    id: str = ""
    call_id: str
    # This field is OpenAI's, and has another type than the text of other items.
    output: list[ShellOutput]  # type: ignore[assignment]
    max_output_length: int | None = None
    status: Literal["in_progress", "completed", "incomplete"] | None = "completed"

    @property
    def is_silent(self) -> bool:
        """Tells that the model reads the output with its call, or without one not at all."""
        return True

    def text(self) -> str:
        return write_outputs(self.output)


def write_outputs(outputs: list[ShellOutput]) -> str:
    """Writes the outputs of all commands of a call for the model."""
    return "\n".join(each.text() for each in outputs).strip() or "[The commands had no output.]"
