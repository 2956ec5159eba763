from collections.abc import Iterator

import httpx
import openai
import pytest

from ouzel.parsers.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN


@pytest.fixture(scope="session")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Says what the user said, and what the user said may be reasoning and tool calls."""
    output_format = OutputFormat(calls=HERMES, reasoning=THINKING_ONLY)
    options: dict[str, object] = {"max_model_len": 4096}
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/responses.sqlite3"
    with running_server(options, chat_template=QWEN, output_format=output_format, store_url=url) as server:
        yield server


@pytest.fixture(scope="session")
def thinker_http(thinker: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=thinker.url, timeout=None) as client:
        yield client


@pytest.fixture(scope="session")
def thinker_client(thinker: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{thinker.url}/v1", api_key="none", max_retries=0) as client:
        yield client
