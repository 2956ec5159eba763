"""The bundled model works with a tool that the server calls: it asks, reads the result and answers.

The server is started as a user starts it, and the tool belongs to an MCP server over HTTP.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import openai
import pytest
from agents import Agent, HostedMCPTool, ModelSettings, OpenAIResponsesModel, RunConfig, Runner
from agents.items import ToolCallItem
from mcp.server import MCPServer
from openai.types.responses.tool_param import Mcp

from tests.hosted_tools.mcp_server import running
from tests.serve.running import serving

REPORT = '{"temperature": 21, "condition": "sunny"}'
ANSWER = "The temperature is 21 and the condition is sunny."
MODEL = "ouzel-demo"


@dataclass(frozen=True)
class Setup:
    url: str  # address of the server of the model
    tool: Mcp
    cities: list[str]  # arguments of all calls


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    cities: list[str] = []
    weather = MCPServer("weather")

    @weather.tool(description="Get the current weather")
    def get_weather(city: str) -> str:
        cities.append(city)
        return REPORT

    # Whole results in f32: a busy machine must not decide a near-tie in another way.
    exact = ("--precision", "f32", "--kv-cache-dtype", "f32", "--no-prefix-caching")
    with running(weather.streamable_http_app()) as port:
        allowed = ("--allowed-mcp-hosts", f"127.0.0.1:{port}", "--no-prompt-lookup")
        with serving(*exact, *allowed, cache_dir=tmp_path_factory.mktemp("cache")) as server:
            tool = Mcp(
                type="mcp",
                server_label="weather",
                server_url=f"http://127.0.0.1:{port}/mcp",
                require_approval="never",
            )
            yield Setup(server.url, tool, cities)


@pytest.fixture
def client(setup: Setup) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=setup.url, api_key="none", max_retries=0) as client:
        yield client


def test_a_result_is_answered_in_a_sentence(setup: Setup, client: openai.OpenAI) -> None:
    setup.cities.clear()
    response = client.responses.create(
        model=MODEL, input="What is the weather in Paris?", tools=[setup.tool], temperature=0
    )
    assert [item.type for item in response.output] == ["mcp_list_tools", "mcp_call", "message"]
    assert response.output_text == ANSWER
    assert setup.cities == ["Paris"]


def test_two_calls_of_one_turn_are_streamed(setup: Setup, client: openai.OpenAI) -> None:
    setup.cities.clear()
    with client.responses.stream(
        model=MODEL,
        input="What is the weather in Vienna and in Rome?",
        tools=[setup.tool],
        temperature=0,
    ) as stream:
        types = [event.type for event in stream]
        response = stream.get_final_response()
    assert types.count("response.mcp_call.completed") == 2
    assert [item.type for item in response.output][1:] == ["mcp_call", "mcp_call", "message"]
    assert response.output_text == ANSWER
    assert sorted(setup.cities) == ["Rome", "Vienna"]


def test_a_question_without_need_of_the_tool_is_answered_at_once(
    setup: Setup, client: openai.OpenAI
) -> None:
    setup.cities.clear()
    response = client.responses.create(
        model=MODEL, input="Hello!", tools=[setup.tool], temperature=0
    )
    assert response.output_text == "Hello! How can I help you?"
    assert setup.cities == []


async def test_the_agents_sdk_gets_the_answer(setup: Setup) -> None:
    async with openai.AsyncOpenAI(base_url=setup.url, api_key="none", max_retries=0) as client:
        agent = Agent(
            name="agent",
            model=OpenAIResponsesModel(MODEL, client),
            tools=[HostedMCPTool(tool_config=setup.tool)],
            model_settings=ModelSettings(temperature=0),
        )
        result = await Runner.run(
            agent, "What is the weather in Paris?", run_config=RunConfig(tracing_disabled=True)
        )
    assert any(isinstance(item, ToolCallItem) for item in result.new_items)
    assert result.final_output == ANSWER
