"""Runs the interactive chat: reads lines, and runs each as a command or sends it as a message."""

from ouzel.client.base import ApiFailure
from ouzel.terminal.harmless import whole_characters
from ouzel.terminal_chat.chat import Chat
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.commands.commands import read_message, run_command
from ouzel.terminal_chat.line_editor import LineEditor


def converse(chat: Chat, editor: LineEditor) -> None:
    while not chat.is_over:
        draft, chat.draft = chat.draft, ""
        try:
            line = whole_characters(editor.read(default=draft))
        except KeyboardInterrupt:
            chat.terminal.say("(Ctrl-D or /exit ends)")
            continue
        except EOFError:
            return
        _take(chat, line)


def _take(chat: Chat, line: str) -> None:
    try:
        if line.strip() and not run_command(chat, line):
            chat.send(read_message(line))
            chat.terminal.console.print()
    except (ChatError, ApiFailure) as error:
        chat.terminal.complain(str(error))
    except KeyboardInterrupt:
        chat.terminal.say("(stopped)")
