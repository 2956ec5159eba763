"""The OpenAI Agents SDK uses MCP servers through this server, with its HostedMCPTool."""

from collections.abc import AsyncIterator, Iterator
from typing import Any  # the SDK's own configuration of tools

import openai
import pytest
from agents import (
    Agent,
    HostedMCPTool,
    MCPToolApprovalFunctionResult,
    MCPToolApprovalRequest,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunResult,
)

from ouzel.config.media_hosts import read_media_hosts
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.mcp_kind import McpKind
from tests.api.responses.test_tools import write_call
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer
from tests.hosted_tools.mcp_server import SECRET, KeyCheck, make_server, running

ADD = write_call("add", {"a": 2, "b": 3})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(KeyCheck(make_server().streamable_http_app(), SECRET)) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module")
def server(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    allowed = read_media_hosts((url.split("/")[2],), "allowed_mcp_hosts")
    kind = McpKind({}, allowed, timeout_s=60.0, max_answer_bytes=10**6)
    store = tmp_path_factory.mktemp("store") / "responses.sqlite3"
    with thinking_server(
        f"sqlite:///{store}", max_model_len=16384, hosted=HostedKinds((kind,))
    ) as server:
        yield server


@pytest.fixture
async def model(server: RunningServer) -> AsyncIterator[OpenAIResponsesModel]:
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0
    ) as client:
        yield OpenAIResponsesModel(server.model.names[0], client)


def make_agent(model: OpenAIResponsesModel, url: str, **fields: Any) -> Agent[None]:
    on_approval = fields.pop("on_approval_request", None)
    config: Any = {
        "type": "mcp",
        "server_label": "sums",
        "server_url": url,
        "headers": {"Authorization": SECRET},
        "require_approval": "never",
        **fields,
    }
    return Agent(
        name="adder",
        model=model,
        tools=[HostedMCPTool(tool_config=config, on_approval_request=on_approval)],
    )


async def run(agent: Agent[None]) -> RunResult:
    return await Runner.run(agent, ADD, run_config=RunConfig(tracing_disabled=True))


def list_items(result: RunResult) -> list[str]:
    return [str(item.type) for item in result.new_items]


async def test_an_agent_calls_a_tool_of_a_server(model: OpenAIResponsesModel, url: str) -> None:
    result = await run(make_agent(model, url))
    assert "the sum is 5" in result.final_output
    assert list_items(result) == ["mcp_list_tools_item", "tool_call_item", "message_output_item"]


async def test_an_agent_follows_the_stream(model: OpenAIResponsesModel, url: str) -> None:
    result = Runner.run_streamed(
        make_agent(model, url), ADD, run_config=RunConfig(tracing_disabled=True)
    )
    kinds = [
        event.data.type
        async for event in result.stream_events()
        if event.type == "raw_response_event"
    ]
    assert "response.mcp_call.completed" in kinds
    assert "the sum is 5" in result.final_output


@pytest.mark.parametrize("approves", [True, False])
async def test_an_agent_approves_calls(
    model: OpenAIResponsesModel, url: str, approves: bool
) -> None:
    asked: list[tuple[str, str]] = []

    def decide(request: MCPToolApprovalRequest) -> MCPToolApprovalFunctionResult:
        asked.append((request.data.server_label, request.data.name))
        if approves:
            return {"approve": True}
        return {"approve": False, "reason": "not today"}

    agent = make_agent(model, url, require_approval="always", on_approval_request=decide)
    result = await run(agent)
    assert asked == [("sums", "add")]
    assert ("the sum is 5" if approves else "not today") in result.final_output
