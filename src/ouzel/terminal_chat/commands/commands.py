"""What begins with a slash is a command; the table says which there are."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from ouzel.client.base import ApiFailure
from ouzel.terminal_chat.chat import Chat
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.commands import file_commands, setting_commands
from ouzel.terminal_chat.commands.stats import stats_text
from ouzel.terminal_chat.settings import COMMON

_COMMAND = re.compile(r"/([\w?-]*)(?:\s+(.*))?", re.DOTALL)
Completed = Literal["nothing", "path", "setting", "set", "model", "switch"]


@dataclass(frozen=True, slots=True)
class Command:
    """`parameters` is for people; without any the command takes none."""

    parameters: str
    summary: str
    function: Callable[[Chat, str], None]
    completed: Completed = "nothing"


def run_command(chat: Chat, line: str) -> bool:
    """Tells whether the line is a command, which then has been run. Raises ChatError and ApiFailure."""
    match = _COMMAND.fullmatch(line.strip())
    if match is None:
        return False
    name, argument = match[1], (match[2] or "").strip()
    command = COMMANDS.get(name)
    if command is None:
        similar = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean /{similar[0]}?" if similar else "/help lists all"
        raise ChatError(f"there is no command /{name}; {hint} (a message may begin with //)")
    if argument and not command.parameters:
        raise ChatError(f"/{name}: must stand alone, given {argument!r}")
    command.function(chat, argument)
    return True


def message_of(line: str) -> str:
    """Returns the message that a line is which is no command."""
    text = line.strip()
    return text[1:] if text.startswith("//") else text


def completions(chat: Callable[[], Chat]) -> dict[str, Callable[[], Sequence[str]] | None]:
    """Returns what may follow each command; None for a path. A server that fails to answer has nothing to propose."""

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
    }
    return {f"/{name}": values[command.completed] for name, command in COMMANDS.items()}


def _help(chat: Chat, argument: str) -> None:
    entries = {
        f"/{name} {command.parameters}".rstrip(): command.summary
        for name, command in COMMANDS.items()
    }
    keys = "Enter sends, Alt-Enter or Ctrl-J begins a new line, Tab completes, Ctrl-C stops an answer, Ctrl-D ends."
    chat.terminal.show_pairs(entries)
    chat.terminal.say(keys)


def _reset(chat: Chat, argument: str) -> None:
    chat.conversation.cut(0)
    chat.pictures, chat.unsent = [], ""
    chat.terminal.say("a new conversation; system text, settings, tools and schema are as before")


def _retry(chat: Chat, argument: str) -> None:
    """Sends the last message again, with its pictures, or the one that failed."""
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
    chat.terminal.say(stats_text(chat.answers))


def _exit(chat: Chat, argument: str) -> None:
    chat.is_over = True


COMMANDS: Mapping[str, Command] = {
    "help": Command("", "this list", _help),
    "system": Command("[TEXT | off]", "the text before the conversation", setting_commands.system),
    "set": Command(
        "[NAME VALUE]",
        "a field of the requests, as temperature 0.2; alone: what is set",
        setting_commands.set_field,
        "setting",
    ),
    "unset": Command(
        "NAME", "the field has the server's default again", setting_commands.unset_field, "set"
    ),
    "model": Command(
        "[NAME]", "choose a model; alone: which there are", setting_commands.model, "model"
    ),
    "image": Command(
        "[PATH | off]", "show the next message's picture", file_commands.image, "path"
    ),
    "tools": Command(
        "[FILE.py | off]",
        "functions that the model may call, each time with your leave",
        file_commands.tools,
        "path",
    ),
    "schema": Command(
        "[FILE | off]", "answers are JSON of this schema", file_commands.schema, "path"
    ),
    "retry": Command("", "another answer to the last message", _retry),
    "edit": Command("", "take the last message back into the line", _edit),
    "undo": Command("", "take the last message and its answer back", _undo),
    "reset": Command("", "a new conversation", _reset),
    "new": Command("", "the same as /reset", _reset),
    "save": Command("FILE", "write the conversation and the settings", file_commands.save, "path"),
    "load": Command("FILE", "go on with what was saved", file_commands.load, "path"),
    "markdown": Command(
        "[on | off]",
        "whether answers are drawn, or shown as they are",
        setting_commands.markdown,
        "switch",
    ),
    "stats": Command("", "tokens and times of the last answer, and of all", _stats),
    "exit": Command("", "end, as Ctrl-D does", _exit),
}
