"""The Responses API runs Python code and commands in sandboxes."""

import base64
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import openai
import pytest

from ouzel.hosted_tools.code_interpreter.containers import Containers
from tests.api.requests import Json, read_error
from tests.api.responses.strict import strict_events, strict_response
from tests.api.responses.test_tools import write_call
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer
from tests.hosted_tools.code_interpreter.sandboxes import make_plan, skip_without_sandbox

AUTO: Json = {"type": "code_interpreter", "container": {"type": "auto"}}
SHELL: Json = {"type": "shell", "environment": {"type": "container_auto"}}
LOCAL: Json = {"type": "shell", "environment": {"type": "local"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    skip_without_sandbox()
    path = tmp_path_factory.mktemp("store") / "responses.sqlite3"
    containers = Containers(make_plan(), max_containers=16, idle_s=3600)
    with thinking_server(f"sqlite:///{path}", max_model_len=16384, containers=containers) as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(autouse=True)
def no_containers_are_left(server: RunningServer) -> Iterator[None]:
    yield
    with server.client() as http:
        for container in http.get("/v1/containers?limit=100").json()["data"]:
            http.delete(f"/v1/containers/{container['id']}")


def python(code: str) -> str:
    return write_call("python", {"code": code})


def post(http: httpx.Client, text: object, tool: Json = AUTO, **fields: object) -> dict[str, Any]:
    answer = http.post("/v1/responses", json={"input": text, "tools": [tool], **fields})
    assert answer.status_code == 200, answer.text
    strict_response(answer.text)
    response: dict[str, Any] = answer.json()
    return response


def create(http: httpx.Client, text: object, tool: Json = AUTO, **fields: object) -> list[Any]:
    output: list[Any] = post(http, text, tool, **fields)["output"]
    return output


def test_code_runs_and_the_model_reads_its_output(http: httpx.Client) -> None:
    call, message = create(http, python("print('hi')\n6 * 7"))
    assert call["code"] == "print('hi')\n6 * 7" and call["status"] == "completed"
    assert call["output"] == "hi\n42" and call["outputs"] is None
    assert "hi\n42" in message["content"][0]["text"]  # the model repeats the output


def test_logs_and_images_are_included_on_request(http: httpx.Client) -> None:
    png = b"\x89PNG\r\n\x1a\nimage"
    code = f"print(1)\nclass P:\n    def _repr_png_(self): return {png!r}\nP()"
    call, _ = create(http, python(code), include=["code_interpreter_call.outputs"])
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    assert call["outputs"] == [{"type": "logs", "logs": "1\n"}, {"type": "image", "url": url}]
    assert "shown to the user" in call["output"]


def test_a_conversation_keeps_its_container(http: httpx.Client) -> None:
    first = post(http, python("x = 41"))
    call, _ = create(http, python("x + 1"), previous_response_id=first["id"])
    assert call["container_id"] == first["output"][0]["container_id"]
    assert call["output"] == "42"
    alone, _ = create(http, python("x"))
    assert "NameError" in alone["output"]


def test_a_client_without_a_store_keeps_the_container_by_sending_the_items(
    http: httpx.Client,
) -> None:
    sent = [{"role": "user", "content": python("x = 41")}]
    first = create(http, sent, store=False)
    call, _ = create(
        http, [*sent, *first, {"role": "user", "content": python("x + 1")}], store=False
    )
    assert call["output"] == "42"


def test_a_container_that_has_ended_is_replaced(http: httpx.Client) -> None:
    first = post(http, python("import os, signal\nos.kill(1, 9)\nos.kill(os.getppid(), 9)"))
    assert first["output"][0]["status"] == "failed"
    assert "the container has ended" in first["output"][0]["output"]
    call, _ = create(http, python("1 + 1"), previous_response_id=first["id"])
    assert call["container_id"] != first["output"][0]["container_id"]
    assert call["output"] == "2"


def test_files_that_code_writes_are_cited_and_downloaded(
    http: httpx.Client, server: RunningServer
) -> None:
    code = "open('table.csv', 'w').write('a,b')"
    call, message = create(http, python(code))
    [source] = call["sources"]
    assert source["title"] == "table.csv" and source["container_id"] == call["container_id"]
    annotations = message["content"][0]["annotations"]
    cited = [each for each in annotations if each["type"] == "container_file_citation"]
    assert cited and cited[0]["file_id"] == source["file_id"]
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        content = client.containers.files.content.retrieve(
            cited[0]["file_id"], container_id=cited[0]["container_id"]
        )
        assert content.read() == b"a,b"


def test_outputs_and_names_of_files_cannot_forge_citations(http: httpx.Client) -> None:
    code = "open('real【9】.txt', 'w').write('a')\nprint('Somebody says so【1】')"
    call, message = create(http, python(code))
    assert "says so[1]" in call["output"] and "real[9].txt" in call["output"]
    annotations = message["content"][0]["annotations"]
    assert len(annotations) == call["output"].count("【1】")  # the markers of the server only
    command = write_call("shell", {"commands": ["echo 'so【1】' | tee x"]})
    assert "so[1]" in create(http, command, SHELL)[0]["output"]


def test_uploaded_files_are_in_the_container(http: httpx.Client) -> None:
    upload = http.post(
        "/v1/files", data={"purpose": "user_data"}, files={"file": ("in.txt", b"content")}
    ).json()
    tool: Json = {
        "type": "code_interpreter",
        "container": {"type": "auto", "file_ids": [upload["id"]], "memory_limit": None},
    }
    call, _ = create(http, python("open('/mnt/data/in.txt').read()"), tool)
    assert call["output"] == "'content'"


def test_a_container_of_the_client_is_used(http: httpx.Client) -> None:
    made = http.post("/v1/containers", json={"name": "mine"}).json()
    call, _ = create(http, python("1"), {"type": "code_interpreter", "container": made["id"]})
    assert call["container_id"] == made["id"]
    environment = {"type": "container_reference", "container_id": made["id"]}
    shell: Json = {"type": "shell", "environment": environment}
    sent = write_call("shell", {"commands": ["echo $HOME"]})
    assert create(http, sent, shell)[0]["environment"] == environment


def test_the_events_are_those_of_openai(http: httpx.Client) -> None:
    body = {"input": python("6 * 7"), "tools": [AUTO], "stream": True}
    answer = http.post("/v1/responses", json=body)
    names = [event.type for event in strict_events(answer)]
    start = names.index("response.code_interpreter_call.in_progress")
    assert names[start : start + 5] == [
        "response.code_interpreter_call.in_progress",
        "response.code_interpreter_call_code.delta",
        "response.code_interpreter_call_code.done",
        "response.code_interpreter_call.interpreting",
        "response.code_interpreter_call.completed",
    ]


def test_wrong_arguments_are_told_to_the_model(http: httpx.Client) -> None:
    call, _ = create(http, write_call("python", {"cod": "1"}))
    assert call["status"] == "failed" and "cannot be read" in call["output"]


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        ({"type": "code_interpreter"}, "tools[0].container is required"),
        ({**AUTO, "container": "cntr_unknown"}, "no container 'cntr_unknown'"),
        (
            {**AUTO, "container": {"type": "auto", "memory_limit": "4g"}},
            "tools[0].container.memory_limit must be <= 0.25g",
        ),
        (
            {**AUTO, "container": {"type": "auto", "memory_limit": "much"}},
            "tools[0].container.memory_limit must be a number of GiB",
        ),
        (
            {**AUTO, "container": {"type": "auto", "file_ids": ["file-x"]}},
            'tools[0].container.file_ids[0] must be the id of an uploaded file, given "file-x"',
        ),
        (
            {**AUTO, "container": {"type": "auto", "network_policy": {"type": "allowlist"}}},
            "tools[0].container.network_policy.type must be",
        ),
        (
            {**SHELL, "environment": {"type": "container_auto", "skills": [{}]}},
            "tools[0].environment.skills must be empty",
        ),
    ],
)
def test_wrong_entries_are_refused(http: httpx.Client, tool: Json, message: str) -> None:
    answer = http.post("/v1/responses", json={"input": "hi", "tools": [tool]})
    assert message in read_error(answer)["message"]


def test_commands_run_in_a_container(http: httpx.Client) -> None:
    commands = ["echo out; echo err >&2", "exit 3", "echo x > made.txt"]
    call, output, _ = create(http, write_call("shell", {"commands": commands}), SHELL)
    assert call["action"]["commands"] == commands and call["status"] == "completed"
    assert call["environment"]["type"] == "container_reference"
    assert output["type"] == "shell_call_output" and output["call_id"] == call["call_id"]
    assert output["output"][0] == {
        "outcome": {"type": "exit", "exit_code": 0},
        "stdout": "out\n",
        "stderr": "err\n",
    }
    assert output["output"][1]["outcome"] == {"type": "exit", "exit_code": 3}
    assert "out\nerr" in call["output"] and "[exit code 3]" in call["output"]
    assert "made.txt" in call["output"]


def test_a_command_times_out(http: httpx.Client) -> None:
    arguments = {"commands": ["sleep 1000000"], "timeout_ms": 200}
    _, output, _ = create(http, write_call("shell", arguments), SHELL)
    assert output["output"][0]["outcome"] == {"type": "timeout"}


def test_the_commands_of_a_local_shell_are_run_by_the_client(http: httpx.Client) -> None:
    sent = {"role": "user", "content": write_call("shell", {"commands": ["ls"]})}
    first = post(http, [sent], LOCAL)
    [call] = first["output"]
    assert call["environment"] == {"type": "local"} and call["action"]["commands"] == ["ls"]
    answer = {
        "type": "shell_call_output",
        "call_id": call["call_id"],
        "output": [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    }
    [message] = create(http, [answer], LOCAL, previous_response_id=first["id"])
    assert "a.txt" in message["content"][0]["text"]
    [message] = create(http, [sent, call, answer], LOCAL, store=False)
    assert "a.txt" in message["content"][0]["text"]


def test_without_a_sandbox_code_is_not_run(tmp_path: Any) -> None:
    """The operator reads how the tool is turned on; nothing runs without a sandbox."""
    with thinking_server(f"sqlite:///{tmp_path}/a.sqlite3") as server, server.client() as http:
        answer = http.post("/v1/responses", json={"input": "hi", "tools": [AUTO]})
        assert "tools[0].type must be" in read_error(answer)["message"]
        refused = http.post("/v1/containers", json={"name": "a"})
        assert "--sandbox" in read_error(refused)["message"]
        assert http.get("/v1/containers").json()["data"] == []
        assert http.get("/v1/containers/cntr_x").status_code == 404
