"""Sets up a run of `ouzel chat` from its options: the client, the chat, input and output."""

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from ouzel.client.base import ApiClient
from ouzel.options.invalid_option import InvalidOption
from ouzel.serve.in_process_app import in_process_app, read_own_model
from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat import Chat, choose_model
from ouzel.terminal_chat.chat_api import ChatApi
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.commands.schema_file import read_schema
from ouzel.terminal_chat.commands.tool_file import load_tools
from ouzel.terminal_chat.flags import ChatFlags, api_key, own_flags
from ouzel.terminal_chat.keyboard import Typist
from ouzel.terminal_chat.loop_thread import LoopThread
from ouzel.terminal_chat.picture import read_picture
from ouzel.terminal_chat.settings import check_name, read_setting
from ouzel.terminal_chat.single_answer import Form, print_answer
from ouzel.terminal_chat.terminal import Terminal


def run_session(flags: ChatFlags, rest: Sequence[str], typist: Typist | None) -> None:
    """Runs a conversation, which needs a typist, or prints one answer.

    Raises OuzelError, and KeyboardInterrupt if Ctrl-C ends the run.
    """
    text = _text(flags)
    console = Console(highlight=False, emoji=False, markup=False)
    with (
        LoopThread() as loop,
        _client(flags, rest, loop, console if text is None else None) as client,
    ):
        api = ChatApi(client, loop)
        if text is None:
            assert typist is not None, "without a terminal there is a text"
            _converse(flags, api, console, typist)
        else:
            chat = _chat(flags, api, Terminal(console))
            chat.conversation.add_user(text, chat.pictures)
            print_answer(
                api, chat.body(), Form(is_json=flags.json, has_schema=bool(flags.schema)), console
            )


def _text(flags: ChatFlags) -> str | None:
    """Returns the text for one answer; None for a conversation."""
    if sys.stdin.isatty():
        text = flags.prompt
    else:
        text = "\n\n".join(part for part in (flags.prompt, _standard_input()) if part)
    if text is None:
        if flags.json:
            raise InvalidOption("--json: needs -p, or text on standard input")
        if not sys.stdout.isatty():
            raise InvalidOption("-p: is required if the output is not a terminal")
    elif not text.strip() and not flags.image:
        raise InvalidOption("-p: must have a text, or standard input must have one; both are empty")
    elif flags.tools:
        raise InvalidOption(
            "--tools: needs a conversation, in which the user allows each call; cannot be used "
            "with -p or with text on standard input"
        )
    return text


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode().strip("\n")
    except UnicodeDecodeError as error:
        raise InvalidOption(
            f"standard input: must be UTF-8: {error.reason} at byte {error.start}"
        ) from error


@contextmanager
def _client(
    flags: ChatFlags, rest: Sequence[str], loop: LoopThread, console: Console | None
) -> Generator[ApiClient, None, None]:
    """Opens the client of a server, or loads a model in this process.

    A console, if given, shows that the model is being loaded.
    """
    if flags.url:
        from ouzel.client.http_client import HttpClient  # noqa: PLC0415  slow to import

        client = HttpClient(flags.url, api_key=api_key(flags))
        try:
            yield client
        finally:
            loop.run(client.close())
        return
    options, model = read_own_model(rest, command=flags.command, other_flags=own_flags())
    if console is not None:
        origin = f" from {model.local.origin}" if model.local.origin else ""
        console.print(f"loading {harmless_line(model.local.name + origin)} …", style="dim")
    with loop.entered(in_process_app(options, model)) as own:
        yield own


def _chat(flags: ChatFlags, api: ChatApi, terminal: Terminal) -> Chat:
    """Makes the chat from the options.

    Raises InvalidOption for wrong files and names, and ApiFailure for refusals of the server.
    """
    try:
        chat = Chat(api, terminal, choose_model(api, flags.model_name))
        chat.conversation.system = flags.system
        chat.pictures = [read_picture(path) for path in flags.image]
        chat.tools = load_tools(flags.tools) if flags.tools else {}
        chat.response_format = read_schema(flags.schema) if flags.schema else None
        for setting in flags.set:
            name, value = read_setting(setting)
            check_name(name, api.field_names())
            chat.settings[name] = value
    except ChatError as error:
        raise InvalidOption(str(error)) from error
    return chat


def _converse(flags: ChatFlags, api: ChatApi, console: Console, typist: Typist) -> None:
    # These imports take a third of a second, and only a conversation needs them.
    from ouzel.terminal_chat.commands.commands import completions  # noqa: PLC0415
    from ouzel.terminal_chat.converse import converse  # noqa: PLC0415
    from ouzel.terminal_chat.line_editor import (  # noqa: PLC0415
        CommandCompleter,
        LineEditor,
        open_history,
    )

    history, why_not = open_history(_history_path())
    editor = LineEditor(CommandCompleter(completions(lambda: chat)), history, typist.typed)
    chat = _chat(flags, api, Terminal(console, editor, typist.keyboard))
    chat.check({})
    if why_not:
        chat.terminal.complain(why_not)
    chat.terminal.say(f"{chat.model}; /help lists the commands")
    converse(chat, editor)


def _history_path() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "ouzel" / "chat_history"
