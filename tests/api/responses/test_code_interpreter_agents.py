"""The OpenAI Agents SDK runs code and commands through this server, with its hosted tools."""

from collections.abc import AsyncIterator, Iterator

import openai
import pytest
from agents import (
    Agent,
    CodeInterpreterTool,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunResult,
    ShellTool,
)
from agents.tool import Tool

from ouzel.hosted_tools.code_interpreter.containers import Containers
from tests.api.responses.test_tools import write_call
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer
from tests.hosted_tools.code_interpreter.sandboxes import make_plan, skip_without_sandbox


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    skip_without_sandbox()
    path = tmp_path_factory.mktemp("store") / "responses.sqlite3"
    containers = Containers(make_plan(), max_containers=4, idle_s=3600)
    with thinking_server(f"sqlite:///{path}", max_model_len=16384, containers=containers) as server:
        yield server


@pytest.fixture
async def model(server: RunningServer) -> AsyncIterator[OpenAIResponsesModel]:
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0
    ) as client:
        yield OpenAIResponsesModel(server.model.names[0], client)


async def run(model: OpenAIResponsesModel, tool: Tool, text: str) -> RunResult:
    agent: Agent[None] = Agent(name="coder", model=model, tools=[tool])
    return await Runner.run(agent, text, run_config=RunConfig(tracing_disabled=True))


async def test_an_agent_runs_code(model: OpenAIResponsesModel) -> None:
    tool = CodeInterpreterTool({"type": "code_interpreter", "container": {"type": "auto"}})
    result = await run(model, tool, write_call("python", {"code": "sum(range(101))"}))
    kinds = [str(item.type) for item in result.new_items]
    assert kinds == ["tool_call_item", "message_output_item"]
    assert "5050" in result.final_output


async def test_an_agent_runs_commands_in_a_container(model: OpenAIResponsesModel) -> None:
    tool = ShellTool(environment={"type": "container_auto"})
    result = await run(model, tool, write_call("shell", {"commands": ["echo $((6 * 7))"]}))
    assert "42" in result.final_output
