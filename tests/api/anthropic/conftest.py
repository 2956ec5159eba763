from collections.abc import Iterator

import httpx
import pytest

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.serving import running_server
from tests.prompts.families import QWEN


@pytest.fixture(scope="package")
def http() -> Iterator[httpx.Client]:
    """Yields a client of a model that repeats the user's message, thinking and calls included."""
    with (
        running_server(
            chat_template=QWEN,
            output_format=OutputFormat(calls=HERMES, reasoning=THINKING_ONLY),
            engine_factory="create_recording_parrot",
        ) as server,
        server.client() as http,
    ):
        yield http
