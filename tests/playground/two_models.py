"""A server with two models that chat, and an admin key."""

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
    *, store_url: str | None = None, puller: ModelPuller | None = None, admin_key: str = ADMIN_KEY
) -> Iterator[RunningServer]:
    """Each model repeats the user's text, a character at a time."""
    slow = {"step_delay_s": 0.02} if False else {}
    with running_server(
        {"max_model_len": 4096, **slow},
        names=(FIRST,),
        config=ServerConfig(admin_api_key=admin_key),
        store_url=store_url,
        puller=puller,
        further=(ServerSetup({"max_model_len": 2048}, names=(SECOND,)),),
    ) as server:
        yield server
