"""Runs the commands of a chat: lines that begin with a slash. `COMMANDS` lists them."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from ouzel.client.base import ApiFailure
from ouzel.terminal_chat.chat import Chat
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.commands import file_commands, mcp_command, setting_commands
from ouzel.terminal_chat.commands.stats import format_stats
from ouzel.terminal_chat.settings import COMMON

_COMMAND = re.compile(r"/([\w?-]*)(?:\s+(.*))?", re.DOTALL)
Completed = Literal["nothing", "path", "setting", "set", "model", "switch", "ask"]


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the chat, such as /help."""

    parameters: str  # shown by /help; "" for a command without parameters
    summary: str
    function: Callable[[Chat, str], None]
    completed: Completed = "nothing"


def run_command(chat: Chat, line: str) -> bool:
    """Runs the line if it is a command, and returns whether it is one.

    Raises ChatError and ApiFailure.
    """
    match = _COMMAND.fullmatch(line.strip())
    if match is None:
        return False
    name, argument = match[1], (match[2] or "").strip()
    command = COMMANDS.get(name)
    if command is None:
        similar = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean /{similar[0]}?" if similar else "/help lists all commands"
        raise ChatError(f"there is no command /{name}; {hint} (a message may begin with //)")
    if argument and not command.parameters:
        raise ChatError(f"/{name}: must stand alone, given {argument!r}")
    command.function(chat, argument)
    return True


def read_message(line: str) -> str:
    """Returns the message in a line that is not a command; `//` stands for a slash."""
    text = line.strip()
    return text[1:] if text.startswith("//") else text


def completions(chat: Callable[[], Chat]) -> dict[str, Callable[[], Sequence[str]] | None]:
    """Returns a dict from a command to its possible arguments; None stands for a path.

    If the server does not answer, there are no models to complete.
    """

    def settings() -> Sequence[str]:
        with suppress(ApiFailure):
            known = chat().api.field_names()
            return [name for name in COMMON if not known or name in known]
        return COMMON

    def models() -> Sequence[str]:
        with suppress(ApiFailure):
            return chat().api.models() or ()
        return ()

    values: dict[Completed, Callable[[], Sequence[str]] | None] = {
        "nothing": lambda: (),
        "path": None,
        "setting": settings,
        "set": lambda: list(chat().settings),
        "model": models,
        "switch": lambda: ("on", "off"),
        "ask": lambda: (mcp_command.ASK,),
    }
    return {f"/{name}": values[command.completed] for name, command in COMMANDS.items()}


def _help(chat: Chat, argument: str) -> None:
    entries = {
        f"/{name} {command.parameters}".rstrip(): command.summary
        for name, command in COMMANDS.items()
    }
    keys = (
        "Enter sends, Alt-Enter or Ctrl-J begins a new line, Tab completes, Ctrl-C stops an "
        "answer, Ctrl-D ends."
    )
    chat.terminal.show_pairs(entries)
    chat.terminal.say(keys)


def _reset(chat: Chat, argument: str) -> None:
    chat.conversation.cut(0)
    chat.pictures, chat.unsent = [], ""
    chat.terminal.say(
        "a new conversation; system message, settings, tools and schema are unchanged"
    )


def _retry(chat: Chat, argument: str) -> None:
    """Sends the message that failed, or else the last message with its images, again."""
    if chat.unsent:
        chat.send(chat.unsent)
        return
    at = chat.conversation.last_user_at()
    if at is None:
        raise ChatError("/retry: there is no message yet")
    chat.resend(at)


def _undo(chat: Chat, argument: str) -> None:
    chat.terminal.say(f"taken back: {_taken_back(chat, '/undo')}")


def _edit(chat: Chat, argument: str) -> None:
    chat.draft, chat.unsent = chat.unsent or _taken_back(chat, "/edit"), ""


def _taken_back(chat: Chat, command: str) -> str:
    at = chat.conversation.last_user_at()
    if at is None:
        raise ChatError(f"{command}: there is no message yet")
    text = chat.conversation.text_at(at)
    chat.conversation.cut(at)
    return text


def _stats(chat: Chat, argument: str) -> None:
    chat.terminal.say(format_stats(chat.answers))


def _exit(chat: Chat, argument: str) -> None:
    chat.is_over = True


COMMANDS: Mapping[str, Command] = {
    "help": Command("", "this list", _help),
    "system": Command("[TEXT | off]", "set the system message", setting_commands.system),
    "set": Command(
        "[NAME VALUE]",
        "set a field of the requests, such as temperature 0.2; alone: list the fields",
        setting_commands.set_field,
        "setting",
    ),
    "unset": Command(
        "NAME", "use the server's default of a field", setting_commands.unset_field, "set"
    ),
    "model": Command(
        "[NAME]", "choose a model; alone: list the models", setting_commands.model, "model"
    ),
    "image": Command(
        "[PATH | off]", "add an image to the next message", file_commands.image, "path"
    ),
    "tools": Command(
        "[FILE.py | off]",
        "load functions that the model may call; you are asked before each call",
        file_commands.tools,
        "path",
    ),
    "mcp": Command(
        "[ask]",
        "list the MCP servers and their tools; ask: all tools wait for your answer again",
        mcp_command.mcp,
        "ask",
    ),
    "schema": Command(
        "[FILE | off]", "get answers as JSON of this schema", file_commands.schema, "path"
    ),
    "retry": Command("", "get another answer to the last message", _retry),
    "edit": Command("", "take the last message back into the input line", _edit),
    "undo": Command("", "remove the last message and its answer", _undo),
    "reset": Command("", "start a new conversation", _reset),
    "new": Command("", "the same as /reset", _reset),
    "save": Command("FILE", "write the conversation and the settings", file_commands.save, "path"),
    "load": Command("FILE", "continue a saved conversation", file_commands.load, "path"),
    "markdown": Command(
        "[on | off]",
        "draw Markdown, or show answers as they are written",
        setting_commands.markdown,
        "switch",
    ),
    "stats": Command("", "show tokens and times of the last answer and of all answers", _stats),
    "exit": Command("", "end the chat, like Ctrl-D", _exit),
}
