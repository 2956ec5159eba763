"""`ouzel run MODEL` chats with a model of the running server, else loads the model here.

A model that is not on this disk is downloaded first.
"""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import msgspec

from ouzel.errors import ModelLoadError, OuzelError
from ouzel.model_store.catalogue.entry import Entry
from ouzel.model_store.catalogue.whereabouts import resolve_model
from ouzel.options.command_line import read_command_line
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options
from ouzel.terminal.harmless import harmless_line
from ouzel.terminal.one_line_parser import OneLineParser
from ouzel.terminal_chat.command import run_chat
from ouzel.terminal_chat.flags import ChatFlags, make_chat_parser, own_flags, split_flags

_ASK_TIMEOUT_S = 3.0
_OK = 200
_USAGE = "ouzel run MODEL [--url URL] [OPTIONS]"
_DESCRIPTION = """\
Chats with a model: with the server at --url (default: the address of ouzel serve) if it serves the
model, else this program loads the model itself, and downloads it first if needed. MODEL is a short
name, which ouzel models lists, or a model as for ouzel serve. With -p, or with text on standard
input, it prints one answer."""
_EPILOG = """\
The options of ouzel serve for the model, the engine, images and logs are accepted too: with one of
them, this program always loads the model itself."""


def run_parser() -> OneLineParser:
    return make_chat_parser("run", usage=_USAGE, description=_DESCRIPTION, epilog=_EPILOG)


def run(arguments: Sequence[str]) -> int:
    """Runs the chat and returns the exit status. Raises OuzelError and SystemExit."""
    flags, rest = split_flags(run_parser(), arguments, "run")
    if flags.model_name:
        raise InvalidOption(f"--model: write MODEL without an option, given {flags.model_name!r}")
    options = read_command_line(rest, command="run", other_flags=own_flags())
    model = options.model.model
    if not model:
        raise InvalidOption("MODEL is required, such as smollm2:135m; ouzel models lists all")
    entry = _find_entry(options)
    flags = _add_sampling(flags, entry)
    if not any(argument.startswith("-") for argument in rest):
        url = flags.url or _format_url(options)
        names = [model, entry.name, entry.repository_model] if entry else [model]
        if served := _find_served(flags, url, names):
            _tell(f"{model} is served at {url}")
            return run_chat(replace(flags, url=url, model_name=served), [])
        if flags.url:
            _tell(f"{url} does not serve {model}: this program loads it")
    elif flags.url:
        raise InvalidOption(
            "--url: cannot be used with options of ouzel serve, with which this program loads the "
            "model itself"
        )
    return run_chat(replace(flags, url="", api_key=""), rest)


def _find_entry(options: Options) -> Entry | None:
    """Returns the catalogue's entry of the model; None for a path, a repository or another name."""
    model = options.model
    with suppress(ModelLoadError):
        return resolve_model(model.model, model.cache_dir, model.catalogue).entry
    return None


def _add_sampling(flags: ChatFlags, entry: Entry | None) -> ChatFlags:
    """Adds the fields of the catalogue before the fields of the user, of which the last count."""
    if entry is None:
        return flags
    fields = (f"{name}={value:g}" for name, value in entry.sampling.items())
    return replace(flags, set=(*fields, *flags.set))


def _format_url(options: Options) -> str:
    """Returns the address at which `ouzel serve` would listen with the same options."""
    server = options.server
    if server.uds:
        return f"unix:{server.uds}"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.host, server.host)
    scheme = "https" if server.ssl_certfile else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{server.port}"


def _find_served(flags: ChatFlags, url: str, names: Sequence[str]) -> str:
    """Returns the first of the names that the server has; empty without a server.

    Raises OuzelError if the user named a server and it cannot be asked.
    """
    try:
        served = asyncio.run(_list_served(url, flags.api_key))
    except OuzelError:
        if flags.url:
            raise
        return ""
    return next((name for name in names if name in served), "")


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


async def _list_served(url: str, api_key: str) -> list[str]:
    """Returns the models of a server. Raises OuzelError."""
    from ouzel.client.base import UNREADABLE, ApiFailure, read_failure  # noqa: PLC0415
    from ouzel.client.http_client import HttpClient  # noqa: PLC0415  slow to import

    client = HttpClient(url, api_key=api_key)
    try:
        async with asyncio.timeout(_ASK_TIMEOUT_S):
            answer = await client.ask("GET", "/v1/models")
        if answer.status != _OK:
            raise read_failure(answer)
        return [model.id for model in msgspec.json.decode(answer.body, type=_Models).data]
    except TimeoutError as error:
        raise ApiFailure(f"{url} did not answer within {_ASK_TIMEOUT_S:g} s") from error
    except UNREADABLE as error:
        raise ApiFailure(f"{url}/v1/models answered no list of models: {error}") from error
    finally:
        await client.close()


def _tell(line: str) -> None:
    sys.stderr.write(f"ouzel: {harmless_line(line)}\n")
