"""Serves the API to commands like `ouzel chat` in their own process, without listening."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from ouzel.client.app_client import AppClient
from ouzel.client.base import ApiClient
from ouzel.config import ModelsConfig, ServerConfig, StoreConfig
from ouzel.options.command_line import read_command_line
from ouzel.options.invalid_option import InvalidOption
from ouzel.options.options import Options
from ouzel.options.records import format_flag, list_options
from ouzel.serve.command import apply_logging
from ouzel.serve.model_host import ModelHost
from ouzel.serve.open_models import CheckedModel, open_model
from ouzel.serve.serve import open_frontend_for

_OF_SERVING = (ModelsConfig, ServerConfig, StoreConfig)
_ALSO_OF_SERVING = ("otlp_traces_endpoint", "metrics_port", "metrics_host")


def read_own_model(
    arguments: Sequence[str], *, command: str, other_flags: Sequence[str] = ()
) -> tuple[Options, CheckedModel]:
    """Reads MODEL and the options of a model, and opens the model; a download may take minutes.

    Raises OuzelError. Raises SystemExit after it has printed the help, or the fault of a flag.
    """
    _refuse_flags_of_serving(arguments, command=command)
    # Log lines about normal work would stand between the answers.
    environment = {"OUZEL_LOG_LEVEL": "warning", **os.environ}
    options = apply_logging(
        read_command_line(arguments, environment, command=command, other_flags=other_flags)
    )
    return options, open_model(options.first)


@asynccontextmanager
async def in_process_app(options: Options, model: CheckedModel) -> AsyncGenerator[ApiClient, None]:
    """Loads the model and yields a client of its API. Raises OuzelError."""
    host = ModelHost(options)
    front = None
    try:
        front = await open_frontend_for(_unserved(options), [model], host, None)
        client = AppClient(front.app)
        await client.start()
        try:
            yield client
        finally:
            await client.close()
    finally:
        await host.close()
        if front is not None:
            await front.close()


def _refuse_flags_of_serving(arguments: Sequence[str], *, command: str) -> None:
    """Refuses flags about listening, access and storage, which only a server has.

    The environment and the options file may hold such options: a server shares them.
    Raises InvalidOption.
    """
    names = [option.name for record in _OF_SERVING for option in list_options(record)]
    flags = {format_flag(name) for name in (*names, *_ALSO_OF_SERVING)}
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag in flags or flag.replace("--no-", "--", 1) in flags:
            raise InvalidOption(
                f"{flag}: is an option of ouzel serve; ouzel {command} does not listen or store"
            )


def _unserved(options: Options) -> Options:
    """Returns the options with only the first model, no API keys and no store."""
    alone = (options.first,)
    return replace(
        options,
        all_models=alone,
        models=ModelsConfig(load_on_request=False),
        server=ServerConfig(),
        store=StoreConfig(store=False),
    )
