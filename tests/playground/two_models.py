"""Starts a server with two models that chat. Each repeats the user's text."""

from collections.abc import Iterator
from contextlib import contextmanager

from ouzel.api.endpoint.model_pulls import ModelPuller
from ouzel.config import ServerConfig
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import OutputFormat
from tests.api.server_setup import ServerSetup
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN

ADMIN_KEY = "sk-admin"
FIRST, SECOND = "org/parrot", "org/second"


@contextmanager
def serving_two_models(
    *,
    store_url: str | None = None,
    puller: ModelPuller | None = None,
    admin_key: str = "",
    step_s: float = 0.0,
    calls_tools: bool = False,
) -> Iterator[RunningServer]:
    options = {"max_model_len": 4096, "step_s": step_s}
    plain = ServerSetup()
    output_format = OutputFormat(calls=HERMES) if calls_tools else plain.output_format
    chat_template = QWEN if calls_tools else plain.chat_template
    with running_server(
        options,
        names=(FIRST,),
        output_format=output_format,
        chat_template=chat_template,
        config=ServerConfig(admin_api_key=admin_key),
        store_url=store_url,
        puller=puller,
        further=(
            ServerSetup(
                options,
                names=(SECOND,),
                output_format=output_format,
                chat_template=chat_template,
            ),
        ),
    ) as server:
        yield server
