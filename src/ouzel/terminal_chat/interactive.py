"""Runs a conversation: the chat, its line editor and its history."""

import os
from pathlib import Path

from ouzel.terminal_chat.chat import Chat
from ouzel.terminal_chat.chat_api import ChatApi
from ouzel.terminal_chat.chat_setup import read_setup
from ouzel.terminal_chat.commands.commands import completions
from ouzel.terminal_chat.converse import converse
from ouzel.terminal_chat.flags import ChatFlags
from ouzel.terminal_chat.keyboard import Typist
from ouzel.terminal_chat.line_editor import CommandCompleter, LineEditor, open_history
from ouzel.terminal_chat.terminal import make_terminal


def run_interactive(flags: ChatFlags, api: ChatApi, typist: Typist) -> None:
    """Runs the conversation to its end. Raises OuzelError for wrong options and refusals."""
    history, why_not = open_history(_history_path())
    editor = LineEditor(CommandCompleter(completions(lambda: chat)), history, typist.typed)
    setup = read_setup(flags, api)
    chat = Chat(
        api,
        make_terminal(editor, typist.keyboard),
        setup.model,
        settings=setup.settings,
        pictures=setup.pictures,
        tools=setup.tools,
        response_format=setup.response_format,
    )
    chat.conversation.system = setup.system
    chat.check({})
    if why_not:
        chat.terminal.complain(why_not)
    chat.terminal.say(f"{chat.model}; /help lists the commands")
    if labels := api.mcp_servers.labels:
        chat.terminal.say(f"MCP servers: {', '.join(labels)}")
    converse(chat, editor)


def _history_path() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "ouzel" / "chat_history"
