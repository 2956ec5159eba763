"""Other commands than `serve` ask the same API of a model in this process's engine, without listening anywhere."""

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
from ouzel.options.records import flag_of, options_of
from ouzel.serve.command import apply_logging
from ouzel.serve.model_host import ModelHost
from ouzel.serve.open_models import CheckedModel, open_model
from ouzel.serve.serve import open_frontend_for

_OF_SERVING = (ModelsConfig, ServerConfig, StoreConfig)
_ALSO_OF_SERVING = ("otlp_traces_endpoint", "metrics_port", "metrics_host")


def read_own_model(
    arguments: Sequence[str], *, command: str, other_flags: Sequence[str] = ()
) -> tuple[Options, CheckedModel]:
    """Reads MODEL and those options of `ouzel serve` that are not about serving; downloads where it must.

    Raises OuzelError, and SystemExit where a text has been written.
    """
    _refuse_flags_of_serving(arguments, command=command)
    environment = {
        "OUZEL_LOG_LEVEL": "warning",
        **os.environ,
    }  # what goes well need not be told between answers
    options = apply_logging(
        read_command_line(arguments, environment, command=command, other_flags=other_flags)
    )
    return options, open_model(options.all_models[0])


@asynccontextmanager
async def in_process_app(options: Options, model: CheckedModel) -> AsyncGenerator[ApiClient, None]:
    """Loads the model, and closes all at the end. Raises OuzelError."""
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
    """Raises InvalidOption for a flag that says who may ask a server, where it listens or what it keeps.

    The environment and the file of options may hold such: they are those of a server too, and are left out here.
    """
    names = [option.name for record in _OF_SERVING for option in options_of(record)]
    flags = {flag_of(name) for name in (*names, *_ALSO_OF_SERVING)}
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag in flags or flag.replace("--no-", "--", 1) in flags:
            raise InvalidOption(
                f"{flag}: is an option of ouzel serve; ouzel {command} listens nowhere, keeps nothing"
            )


def _unserved(options: Options) -> Options:
    """Who is in this process needs no key, and nothing that it asks is to be found in the store of a server."""
    alone = options.all_models[:1]
    return replace(options, all_models=alone, server=ServerConfig(), store=StoreConfig(store=False))
