"""Sets up a run of `ouzel chat` from its options: the client, input and output.

Only a conversation, and an answer that is drawn in a terminal, import packages for terminals.
"""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from ouzel.client.base import ApiClient
from ouzel.errors import OuzelError
from ouzel.options.invalid_option import InvalidOption
from ouzel.serve.in_process_app import in_process_app, read_own_model
from ouzel.serve.named_mcp_servers import add_mcp_servers
from ouzel.terminal.harmless import harmless_line
from ouzel.terminal_chat.chat_api import ChatApi
from ouzel.terminal_chat.chat_setup import build_fields, read_setup
from ouzel.terminal_chat.conversation import Conversation
from ouzel.terminal_chat.flags import ChatFlags, api_key, choose_mcp_servers, own_flags
from ouzel.terminal_chat.keyboard import Typist
from ouzel.terminal_chat.loop_thread import LoopThread
from ouzel.terminal_chat.mcp_servers import McpServers
from ouzel.terminal_chat.single_answer import Form, print_answer


def run_session(flags: ChatFlags, rest: Sequence[str], typist: Typist | None) -> None:
    """Runs a conversation, which needs a typist, or prints one answer.

    Raises OuzelError, and KeyboardInterrupt if Ctrl-C ends the run.
    """
    text = _text(flags)
    servers = choose_mcp_servers(flags)
    if text is not None:
        with LoopThread() as loop, _client(flags, rest, loop, servers) as client:
            _print_one(flags, ChatApi(client, loop, servers), text)
        return
    assert typist is not None, "without a terminal there is a text"
    with _explained_imports():
        from ouzel.terminal_chat.terminal import make_terminal  # noqa: PLC0415  see the rules above
    say = make_terminal().say
    with LoopThread() as loop, _client(flags, rest, loop, servers, say) as client:
        # These imports take a third of a second; the user knows of the loading model meanwhile.
        with _explained_imports():
            from ouzel.terminal_chat.interactive import run_interactive  # noqa: PLC0415

        run_interactive(flags, ChatApi(client, loop, servers), typist)


def _print_one(flags: ChatFlags, api: ChatApi, text: str) -> None:
    setup = read_setup(flags, api)
    conversation = Conversation()
    conversation.system = setup.system
    conversation.add_user(text, setup.pictures)
    fields = build_fields(setup.model, setup.settings, setup.tools, setup.response_format)
    form = Form(is_json=flags.json, has_schema=bool(flags.schema))
    print_answer(api, {**fields, "messages": conversation.messages}, form)


@contextmanager
def _explained_imports() -> Generator[None, None, None]:
    """Raises OuzelError for a package that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise OuzelError(
            f"a conversation needs the package {error.name}, which is not installed; "
            "-p and text on standard input need none"
        ) from error


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
    elif flags.mcp and flags.mcp_approval != "never":
        raise InvalidOption(
            "--mcp: needs a conversation, in which the user allows each call, or --mcp-approval "
            "never"
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
    flags: ChatFlags,
    rest: Sequence[str],
    loop: LoopThread,
    servers: McpServers,
    say: Callable[[str], None] = lambda text: None,
) -> Generator[ApiClient, None, None]:
    """Opens the client of a server, or loads a model in this process.

    `say` tells the user that the model is being loaded.
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
    options = add_mcp_servers(options, servers.urls, servers.names, servers.headers)
    origin = f" from {model.local.origin}" if model.local.origin else ""
    say(f"loading {harmless_line(model.local.name + origin)} …")
    with loop.entered(in_process_app(options, model)) as own:
        yield own
