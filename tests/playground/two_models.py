"""Starts a server with two models that chat. Each repeats the user's text."""

from collections.abc import Iterator
from contextlib import contextmanager

from ouzel.api.endpoint.model_pulls import ModelPuller
from ouzel.config import ServerConfig
from tests.api.server_setup import ServerSetup
from tests.api.serving import RunningServer, running_server

ADMIN_KEY = "sk-admin"
FIRST, SECOND = "org/parrot", "org/second"


@contextmanager
def serving_two_models(
    *,
    store_url: str | None = None,
    puller: ModelPuller | None = None,
    admin_key: str = "",
    step_s: float = 0.0,
) -> Iterator[RunningServer]:
    options = {"max_model_len": 4096, "step_s": step_s}
    with running_server(
        options,
        names=(FIRST,),
        config=ServerConfig(admin_api_key=admin_key),
        store_url=store_url,
        puller=puller,
        further=(ServerSetup(options, names=(SECOND,)),),
    ) as server:
        yield server
