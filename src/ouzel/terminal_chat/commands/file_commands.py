"""Runs the commands that take a file."""

import os
import shlex

from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat import Chat
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.commands.saved_chat import SavedChat, read_chat, write_chat
from ouzel.terminal_chat.commands.schema_file import read_schema
from ouzel.terminal_chat.commands.setting_commands import OFF
from ouzel.terminal_chat.commands.tool_file import load_tools
from ouzel.terminal_chat.picture import read_picture
from ouzel.terminal_chat.user_file import user_path


def image(chat: Chat, argument: str) -> None:
    if argument == OFF:
        chat.pictures = []
    elif argument:
        chat.pictures.append(read_picture(_path(argument)))
    names = ", ".join(picture.description for picture in chat.pictures)
    chat.terminal.say(
        f"with the next message: {names}" if names else "the next message has no image"
    )


def tools(chat: Chat, argument: str) -> None:
    """Replaces the tools by the functions of a file, and lists them.

    Raises ChatError, and ApiFailure if the server refuses the tools.
    """
    if argument == OFF:
        chat.tools, chat.allowed_tools = {}, set()
    elif argument:
        loaded = load_tools(_path(argument))
        chat.check({"tools": [tool.on_the_wire() for tool in loaded.values()]})
        chat.tools, chat.allowed_tools = loaded, set()
    lines = [
        f"{tool.name}({', '.join(tool.parameters['properties'])}): {tool.description}"
        for tool in chat.tools.values()
    ]
    chat.terminal.say("\n".join(lines) or "there are no tools")


def schema(chat: Chat, argument: str) -> None:
    """Sets the JSON schema of answers.

    Raises ChatError, and ApiFailure if the server does not support the schema.
    """
    if argument == OFF:
        chat.response_format = None
    elif argument:
        response_format = read_schema(_path(argument))
        chat.check({"response_format": response_format})
        chat.response_format = response_format
    chat.terminal.say(
        "answers are text" if chat.response_format is None else "answers are JSON of this schema"
    )


def save(chat: Chat, argument: str) -> None:
    path = _path(argument)
    if not path:
        raise ChatError("/save: must be followed by the name of a file")
    is_there = os.path.exists(user_path(path))
    if is_there and not os.path.isfile(user_path(path)):
        kind = "directory" if os.path.isdir(user_path(path)) else "device"
        raise ChatError(
            f"/save: must be followed by the name of a file, given the {kind} {harmless_line(path)}"
        )
    if is_there:
        question = f"{harmless_line(path)} exists. Replace it? [y]es, [n]o: "
        if chat.terminal.ask(question) not in ("y", "yes"):
            chat.terminal.say("not saved")
            return
    conversation = chat.conversation
    messages = [*conversation.exchanged]
    write_chat(
        path,
        SavedChat(messages, model=chat.model, system=conversation.system, settings=chat.settings),
    )
    chat.terminal.say(f"saved {len(messages)} messages to {path}")


def load(chat: Chat, argument: str) -> None:
    """Loads the messages, system message and settings of a saved chat, but not its model.

    Raises ChatError.
    """
    path = _path(argument)
    if not path:
        raise ChatError("/load: must be followed by the name of a file")
    saved = read_chat(path)
    chat.conversation.replace(saved.messages)
    chat.conversation.system, chat.settings, chat.unsent = saved.system, dict(saved.settings), ""
    chat.terminal.say(
        f"{len(saved.messages)} messages of a chat with {saved.model or 'an unnamed model'}"
    )


def _path(argument: str) -> str:
    """Removes quotes and backslashes, which a terminal adds to the path of a dropped file."""
    try:
        parts = shlex.split(argument)
    except ValueError:
        return argument
    return parts[0] if len(parts) == 1 else argument
