"""Coding agents from npm and PyPI run a command of the model, which reads the output."""

import json
from collections.abc import Mapping
from types import MappingProxyType

import psutil
import pytest

from tests.clients.clients import NODE_20, NODE_22, Clients, node_directory, packages

pytestmark = [pytest.mark.serves, pytest.mark.release("sessions of coding agents")]
EXECUTE_PWD = "Execute the bash with the command 'pwd'."
CHATS = "/v1/chat/completions"
COPILOT_APIS = {
    CHATS: ("/v1", {}),
    "/v1/responses": ("/v1", {"COPILOT_PROVIDER_WIRE_API": "responses"}),
    "/v1/responses as a WebSocket": (
        "/v1",
        {"COPILOT_PROVIDER_WIRE_API": "responses", "COPILOT_PROVIDER_TRANSPORT": "websockets"},
    ),
    "/v1/messages": ("", {"COPILOT_PROVIDER_TYPE": "anthropic"}),
}
each_node = pytest.mark.parametrize("node", [NODE_20, NODE_22])


def run(
    clients: Clients,
    packages_name: str,
    node: str,
    program: str,
    *arguments: str,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Runs a program from npm under a version of Node and returns its output."""
    path = packages(packages_name) / "node_modules" / ".bin" / program
    search_path = f"{node_directory(node)}:{clients.variables({})['PATH']}"
    return clients.run(path, *arguments, environment={**environment, "PATH": search_path}).stdout


@each_node
def test_opencode_runs_a_command(clients: Clients, node: str) -> None:
    settings = json.loads(clients.block("opencode", "json"))
    settings["permission"] = {"*": "deny", "bash": "allow"}
    settings["provider"]["ouzel"]["models"]["ouzel"]["limit"]["context"] = 65536
    (clients.home / "opencode.json").write_text(json.dumps(settings))

    with clients.accepted(f"opencode, {node}", CHATS):
        output = run(
            clients, "opencode", node, "opencode", "run", "--format", "json", *EXECUTE_PWD.split()
        )

    parts = [json.loads(line)["part"] for line in output.splitlines()]
    [call] = [part for part in parts if part["type"] == "tool"]
    assert (call["state"]["input"]["command"], call["state"]["output"]) == (
        "pwd",
        f"{clients.home}\n",
    )
    assert [part for part in parts if part["type"] == "text"]


def test_qwen_code_runs_a_command(clients: Clients) -> None:
    (clients.home / ".qwen").mkdir()
    settings = json.loads(clients.block("qwen-code", "json"))
    settings["model"]["generationConfig"]["contextWindowSize"] = 65536
    settings["tools"] = {"core": ["run_shell_command"]}
    settings["memory"] = {"enableManagedAutoMemory": False, "enableManagedAutoDream": False}
    # the client's own prompt has 25,000 tokens
    (clients.home / "system.md").write_text("You are an agent that runs commands.")
    (clients.home / ".qwen" / "settings.json").write_text(json.dumps(settings))
    options = ("--auth-type", "openai", "--yolo", "--output-format", "json")
    question = "Execute the run_shell_command with the command 'pwd'."
    environment = {
        **clients.exports("qwen-code"),
        "QWEN_SYSTEM_MD": str(clients.home / "system.md"),
    }

    with clients.accepted("Qwen Code", CHATS):
        output = run(
            clients, "qwen-code", NODE_22, "qwen", *options, question, environment=environment
        )

    events = json.loads(output)
    messages = [event["message"] for event in events if event["type"] in ("assistant", "user")]
    blocks = [block for message in messages for block in message["content"]]
    call, *_ = [block for block in blocks if block["type"] == "tool_use"]
    assert (call["name"], call["input"]) == ("run_shell_command", {"command": "pwd"})
    result, *_ = [block for block in blocks if block["type"] == "tool_result"]
    assert str(clients.home) in json.dumps(result)
    assert not events[-1]["is_error"]


@each_node
@pytest.mark.parametrize("api", COPILOT_APIS)
def test_copilot_runs_a_command(clients: Clients, node: str, api: str) -> None:
    path, variables = COPILOT_APIS[api]
    environment = {
        "COPILOT_PROVIDER_BASE_URL": clients.server.root + path,
        "COPILOT_MODEL": "ouzel",
        **variables,
    }
    options = ("--allow-all-tools", "--available-tools", "bash", "-p", EXECUTE_PWD)

    with clients.accepted(f"Copilot CLI, {node}", api.split(maxsplit=1)[0]):
        output = run(clients, "copilot", node, "copilot", *options, environment=environment)

    assert "● pwd (shell)" in output
    answer = output.rpartition("The tool says: ")[2]
    assert clients.home.name in answer  # the demo model omits parts of a long path


@each_node
def test_continue_runs_a_tool(clients: Clients, node: str) -> None:
    """The demo model calls another tool than the question names; its answer quotes the tool's
    output.
    """
    (clients.home / "config.yaml").write_text(clients.block("continue", "yaml"))

    with clients.accepted(f"Continue, {node}", CHATS):
        output = run(
            clients, "continue", node, "cn", "--config", "config.yaml", "--auto", "-p", EXECUTE_PWD
        )

    assert "The tool says" in output


def end_daemons_of_cline(clients: Clients) -> None:
    """Ends the process that Cline leaves running for its next start."""
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if "--cline-hub-daemon" in command and str(clients.home) in command:
            process.terminate()


@each_node
def test_cline_runs_a_tool(clients: Clients, node: str) -> None:
    access = ("-P", "openai-compatible", "-k", "none", "-m", "ouzel")
    configure = (
        "auth",
        "-p",
        "openai-compatible",
        "-k",
        "none",
        "-m",
        "ouzel",
        "-b",
        clients.server.url,
    )
    run(clients, "cline", node, "cline", *configure)

    try:
        with clients.accepted(f"Cline, {node}", CHATS):
            output = run(clients, "cline", node, "cline", "--json", *access, EXECUTE_PWD)
    finally:
        end_daemons_of_cline(clients)

    [result] = [
        event for event in map(json.loads, output.splitlines()) if event["type"] == "run_result"
    ]
    assert (result["finishReason"], result["iterations"]) == ("completed", 2)
    assert result["text"].startswith("The tool says")


def test_aider_shows_an_answer(clients: Clients) -> None:
    """Asks a question only, because the demo model cannot write an edit."""
    program = packages("aider") / "bin" / "aider"
    offline = {
        "AIDER_ANALYTICS": "false",
        "AIDER_CHECK_UPDATE": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    options = (
        "--model",
        "openai/ouzel",
        "--no-show-model-warnings",
        "--no-git",
        "--yes-always",
        "--no-pretty",
    )

    with clients.accepted("aider", CHATS):
        ended = clients.run(
            program,
            *options,
            "--message",
            "Hello!",
            environment={**clients.exports("aider"), **offline},
        )

    assert "Tokens: " in ended.stdout
    assert "litellm." not in ended.stdout + ended.stderr  # the prefix of an error's name
