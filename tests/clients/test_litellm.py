"""LiteLLM: its proxy translates Anthropic's form, and its package recognises a context overflow."""

from collections.abc import Iterator

import httpx
import pytest

from tests.clients.clients import Clients, find_port, packages
from tests.serve.answers import Json
from tests.serve.running import RunningServer

pytestmark = pytest.mark.release("LiteLLM's proxy, which takes long to start")
KEY = {"Authorization": "Bearer sk-litellm"}
WEATHER = '{"temperature": 21, "condition": "sunny"}'
TOOL = {
    "name": "get_weather",
    "description": "Get the current weather",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
OVERFLOW = """
import litellm
try:
    litellm.completion(
        model="openai/ouzel", api_base="URL", api_key="none",
        messages=[{"role": "user", "content": "word " * 70_000}],
    )
except litellm.ContextWindowExceededError:
    print("recognised")
"""
OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_DOCS": "True"}


@pytest.fixture
def proxy(clients: Clients, server: RunningServer) -> Iterator[httpx.Client]:
    """Starts the proxy as the documents do, on a free port."""
    port = find_port()
    (clients.home / "litellm.yaml").write_text(clients.block("litellm", "yaml"))
    program = packages("litellm") / "bin" / "litellm"
    command = (program, "--config", "litellm.yaml", "--port", str(port), "--host", "127.0.0.1")
    root = f"http://127.0.0.1:{port}"
    with (
        clients.background(*command, environment=OFFLINE, ready=f"{root}/health/liveliness"),
        httpx.Client(base_url=root, timeout=None, trust_env=False, headers=KEY) as http,
    ):
        yield http


def send(proxy: httpx.Client, messages: list[Json]) -> list[Json]:
    body = {
        "model": "ouzel",
        "max_tokens": 200,
        "temperature": 0,
        "messages": messages,
        "tools": [TOOL],
    }
    answer = proxy.post("/v1/messages", json=body, headers={"anthropic-version": "2023-06-01"})
    assert answer.status_code == 200, answer.text
    content: list[Json] = answer.json()["content"]
    return content


def test_the_proxy_gives_messages_with_tool_calls(proxy: httpx.Client) -> None:
    question = {"role": "user", "content": "What is the weather in Paris?"}
    asked = send(proxy, [question])
    [call] = [block for block in asked if block["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": WEATHER}

    said = send(
        proxy,
        [question, {"role": "assistant", "content": asked}, {"role": "user", "content": [result]}],
    )

    assert (call["name"], call["input"]) == ("get_weather", {"city": "Paris"})
    assert [block["text"] for block in said if block["type"] == "text"] == [
        "The temperature is 21 and the condition is sunny."
    ]


def test_the_package_recognises_an_overflow(clients: Clients, server: RunningServer) -> None:
    python = packages("litellm") / "bin" / "python"

    said = clients.run(python, "-c", OVERFLOW.replace("URL", server.url), environment=OFFLINE)

    assert said.stdout.splitlines()[-1] == "recognised"
