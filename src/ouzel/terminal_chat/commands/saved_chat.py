"""Writes a chat to a file as one JSON object, and reads and checks it."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal

import msgspec

from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.settings import check_settable
from ouzel.terminal_chat.user_file import read_bytes, user_path


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class _Message(msgspec.Struct):
    """Checks the role and content of a message; the server checks the rest."""

    role: Literal["user", "assistant", "tool"]
    content: str | list[_Part] | None


class SavedChat(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[dict[str, object]]
    format: Literal["ouzel chat"] = "ouzel chat"
    version: Literal[1] = 1
    model: str = ""
    system: str = ""
    settings: dict[str, object] = {}


def write_chat(path: str, chat: SavedChat) -> None:
    """Writes a chat to a file that only its owner can read. Raises ChatError."""
    content = msgspec.json.format(msgspec.json.encode(chat), indent=2) + b"\n"
    try:
        place = Path(os.path.realpath(user_path(path)))  # writes to the target of a link
        with NamedTemporaryFile(dir=place.parent, prefix=".chat-", delete=False) as file:
            unfinished = Path(file.name)  # replaces the old file only when it is complete
            try:
                file.write(content)
                file.flush()
                unfinished.replace(place)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ChatError(f"{harmless_line(path)}: cannot be written: {reason}") from error


def read_chat(path: str) -> SavedChat:
    """Reads a saved chat. Raises ChatError, which names the wrong place in the file."""
    content = read_bytes(path)
    try:
        chat = msgspec.json.decode(content, type=SavedChat)
        msgspec.convert({"messages": chat.messages}, _Messages)
        for name in chat.settings:
            check_settable(name)
    except (ValueError, RecursionError, ChatError) as error:
        raise ChatError(f"{harmless_line(path)}: must be a file of /save: {error}") from error
    return chat


class _Messages(msgspec.Struct):
    messages: list[_Message]
