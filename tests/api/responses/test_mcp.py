"""The Responses API runs tools of MCP servers; the servers are real and on a loopback port."""

import json
import sys
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import openai
import pytest
from openai.types.responses import ResponseOutputMessage
from openai.types.responses.response_output_item import McpApprovalRequest, McpCall, McpListTools

from ouzel.config.media_hosts import read_media_hosts
from ouzel.hosted_tools.mcp.records import LocalServer
from ouzel.responses.hosted.kinds import HostedKinds
from ouzel.responses.hosted.mcp import McpCall as McpCallItem
from ouzel.responses.hosted.mcp_kind import McpKind
from tests.api.requests import Json, read_error
from tests.api.responses.strict import strict_events, strict_response
from tests.api.responses.test_tools import write_call
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer
from tests.hosted_tools.mcp_server import SECRET, KeyCheck, make_server, running

ADD = write_call("add", {"a": 2, "b": 3})
PROGRAM = LocalServer("program", sys.executable, ("-m", "tests.hosted_tools.mcp_server"), {}, ".")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(KeyCheck(make_server().streamable_http_app(), SECRET)) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="module")
def server(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    host = url.split("/")[2]
    kind = McpKind(
        {"program": PROGRAM},
        read_media_hosts((host,), "allowed_mcp_hosts"),
        timeout_s=60.0,
        max_answer_bytes=10**6,
    )
    path = tmp_path_factory.mktemp("store") / "responses.sqlite3"
    hosted = HostedKinds((kind,))
    with thinking_server(f"sqlite:///{path}", max_model_len=16384, hosted=hosted) as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def tool(url: str, **fields: object) -> Json:
    return {
        "type": "mcp",
        "server_label": "sums",
        "server_url": url,
        "authorization": SECRET.removeprefix("Bearer "),
        "require_approval": "never",
        **fields,
    }


def create(http: httpx.Client, input: object, **fields: object) -> dict[str, Any]:
    answer = http.post("/v1/responses", json={"input": input, **fields})
    assert answer.status_code == 200, answer.text
    strict_response(answer.text)
    response: dict[str, Any] = answer.json()
    return response


def list_kinds(response: dict[str, Any]) -> list[str]:
    return [item["type"] for item in response["output"]]


def test_a_tool_of_a_server_is_listed_called_and_read(http: httpx.Client, url: str) -> None:
    response = create(http, ADD, tools=[tool(url)])
    assert list_kinds(response) == ["mcp_list_tools", "mcp_call", "message"]
    listed, call, message = response["output"]
    assert [each["name"] for each in listed["tools"]] == ["add", "fail", "hang", "flood"]
    assert (call["status"], call["output"]) == ("completed", "the sum is 5")
    assert json.loads(call["arguments"]) == {"a": 2, "b": 3}
    assert "the sum is 5" in message["content"][0]["text"]


def test_a_program_of_the_operator_is_named_by_its_label(http: httpx.Client) -> None:
    entry = {"type": "mcp", "server_label": "program", "require_approval": "never"}
    response = create(http, ADD, tools=[entry])
    assert response["output"][1]["output"] == "the sum is 5"


def test_secrets_are_neither_shown_nor_stored(http: httpx.Client, url: str) -> None:
    response = create(http, ADD, tools=[tool(url)], background=True)
    text = http.get(f"/v1/responses/{response['id']}").text
    assert "s3cret" not in text
    [shown] = response["tools"]
    assert shown["server_url"].endswith("/<redacted>")
    assert "authorization" not in shown


def test_the_words_of_a_tool_cannot_forge_citations() -> None:
    call = McpCallItem(id="a", name="b", server_label="c", arguments="{}", output="sure【1】")
    read = call.exchange()
    assert read is not None and read.output == "sure[1]" and call.output == "sure【1】"
    failed = call.fail("no【1】").exchange()
    assert failed is not None and "【" not in failed.output


def test_a_later_response_does_not_list_again(http: httpx.Client, url: str) -> None:
    first = create(http, ADD, tools=[tool(url)])
    second = create(http, ADD, tools=[tool(url)], previous_response_id=first["id"])
    assert list_kinds(second) == ["mcp_call", "message"]


def test_only_allowed_tools_are_offered(http: httpx.Client, url: str) -> None:
    response = create(http, ADD, tools=[tool(url, allowed_tools=["fail"])])
    assert "mcp_call" not in list_kinds(response)
    read_only = create(http, "hi", tools=[tool(url, allowed_tools={"read_only": True})])
    assert [each["name"] for each in read_only["output"][0]["tools"]] == ["add"]


def test_a_failed_call_has_an_error_that_the_model_reads(http: httpx.Client, url: str) -> None:
    response = create(http, write_call("fail", {}), tools=[tool(url)])
    call, message = response["output"][1:]
    assert (call["status"], call["output"]) == ("failed", None)
    assert call["error"]["type"] == "mcp_tool_execution_error"
    assert "Error executing tool fail" in message["content"][0]["text"]


def test_a_stream_has_the_events_of_openai(http: httpx.Client, url: str) -> None:
    body = {"input": ADD, "tools": [tool(url)], "stream": True}
    kinds = [event.type for event in strict_events(http.post("/v1/responses", json=body))]
    start = kinds.index("response.mcp_call.in_progress")
    assert kinds[2:6] == [
        "response.output_item.added",
        "response.mcp_list_tools.in_progress",
        "response.mcp_list_tools.completed",
        "response.output_item.done",
    ]
    assert kinds[start - 1 : start + 5] == [
        "response.output_item.added",
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
        "response.output_item.done",
    ]


@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("approves", [True, False])
def test_a_call_waits_for_its_approval(
    server: RunningServer, url: str, is_stored: bool, approves: bool
) -> None:
    entry: Any = tool(url, require_approval="always")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        asked: Any = [{"role": "user", "content": ADD}]
        first = client.responses.create(input=asked, tools=[entry], store=is_stored)
        listed, request = first.output
        assert isinstance(listed, McpListTools)
        assert isinstance(request, McpApprovalRequest)
        answer: Any = {
            "type": "mcp_approval_response",
            "approval_request_id": request.id,
            "approve": approves,
        }
        if is_stored:
            second = client.responses.create(
                input=[answer], tools=[entry], previous_response_id=first.id
            )
        else:
            items = [*asked, *(item.model_dump() for item in first.output), answer]
            second = client.responses.create(input=items, tools=[entry], store=False)
    if not approves:
        [message] = second.output
        assert isinstance(message, ResponseOutputMessage)
        assert "The user did not allow this call." in second.output_text
        return
    call, _ = second.output
    assert isinstance(call, McpCall)
    assert (call.approval_request_id, call.output) == (request.id, "the sum is 5")
    assert "the sum is 5" in second.output_text


def test_the_usage_counts_only_turns_that_ran(http: httpx.Client, url: str) -> None:
    entry = tool(url, require_approval="always")
    first = create(http, ADD, tools=[entry])
    approval = {
        "type": "mcp_approval_response",
        "approval_request_id": first["output"][1]["id"],
        "approve": True,
    }
    body = {"input": [approval], "tools": [entry], "previous_response_id": first["id"]}
    counted = http.post("/v1/responses/input_tokens", json=body).json()["input_tokens"]
    second = create(http, **body)
    assert counted < second["usage"]["input_tokens"] < 2 * counted


def test_an_approved_call_does_not_run_again(http: httpx.Client, url: str) -> None:
    entry = tool(url, require_approval="always")
    first = create(http, ADD, tools=[entry])
    approval = {
        "type": "mcp_approval_response",
        "approval_request_id": first["output"][1]["id"],
        "approve": True,
    }
    second = create(http, [approval], tools=[entry], previous_response_id=first["id"])
    third = create(http, "thanks", tools=[entry], previous_response_id=second["id"])
    assert list_kinds(third) == ["message"]


@pytest.mark.parametrize(
    ("require", "waits"),
    [
        ({"never": {"tool_names": ["add"]}}, False),
        ({"never": {"read_only": True}}, False),
        ({"never": {"tool_names": ["fail"]}}, True),
        ({"always": {"tool_names": ["add"]}, "never": {"tool_names": ["add"]}}, True),
        (None, True),
    ],
)
def test_approval_is_chosen_by_tool(
    http: httpx.Client, url: str, require: object, waits: bool
) -> None:
    response = create(http, ADD, tools=[tool(url, require_approval=require)])
    assert ("mcp_approval_request" in list_kinds(response)) == waits


def test_a_chosen_tool_must_be_called(http: httpx.Client, url: str) -> None:
    choice = {"type": "mcp", "server_label": "sums", "name": "add"}
    response = create(http, ADD, tools=[tool(url)], tool_choice=choice)
    assert list_kinds(response) == ["mcp_list_tools", "mcp_call", "message"]


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        (
            {"server_url": "http://example.org/mcp"},
            400,
            "tools[0].server_url must be of a host in the server's allowed_mcp_hosts, "
            "given 'example.org'",
        ),
        ({"server_url": "ftp://x"}, 400, "must begin with http:// or https://"),
        ({"server_url": None, "authorization": None}, 400, "tools[0].server_url is required"),
        ({"connector_id": "connector_gmail"}, 400, "tools[0].connector_id is not supported"),
        ({"server_label": "a b"}, 400, "tools[0].server_label"),
        ({"require_approval": "often"}, 400, "tools[0].require_approval"),
        ({"authorization": "wrong"}, 424, "the MCP server 'sums' answered with the status 401"),
    ],
)
def test_what_cannot_be_done_is_refused(
    http: httpx.Client, url: str, fields: Json, status: int, message: str
) -> None:
    answer = http.post("/v1/responses", json={"input": "hi", "tools": [tool(url, **fields)]})
    assert answer.status_code == status
    assert message in read_error(answer)["message"]


def test_two_servers_may_have_tools_of_one_name(http: httpx.Client, url: str) -> None:
    tools = [tool(url), tool(url, server_label="other")]
    response = create(http, write_call("other__add", {"a": 1, "b": 1}), tools=tools)
    [call] = [item for item in response["output"] if item["type"] == "mcp_call"]
    assert (call["server_label"], call["name"]) == ("other", "add")
