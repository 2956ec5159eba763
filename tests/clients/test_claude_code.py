"""Claude Code: a session of two turns, in each of which the model has it run a command.

Claude Code shows the model one tool only; with all tools the prompt would take 40,000 of the demo
model's short tokens.
"""

import json
from typing import Any  # JSON

import pytest

from tests.clients.clients import Clients, packages
from tests.serve.running import RunningServer

UNATTENDED = ("--output-format", "stream-json", "--verbose", "--allowed-tools", "Bash")
ONE_TOOL = ("--tools", "Bash")


def turn(clients: Clients, prompt: str, *arguments: str) -> list[dict[str, Any]]:
    """Runs one turn and returns the events that Claude Code prints."""
    program = packages("claude-code") / "node_modules" / ".bin" / "claude"
    environment = clients.exports("claude-code")
    ended = clients.run(
        program, "-p", *UNATTENDED, *arguments, "--", prompt, environment=environment
    )
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    assert events[-1]["type"] == "result"
    assert not events[-1]["is_error"], events[-1]
    return events


def blocks(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    contents = [
        event["message"]["content"] for event in events if event["type"] in ("assistant", "user")
    ]
    return [block for content in contents for block in content if block["type"] == kind]


def session(clients: Clients, *tools: str) -> None:
    first = turn(clients, "Execute the bash with the command 'pwd'.", *tools)
    second = turn(clients, "Execute the bash with the command 'ls'.", "--continue", *tools)

    [call] = blocks(first, "tool_use")
    [result] = blocks(first, "tool_result")
    assert (call["name"], call["input"]) == ("Bash", {"command": "pwd"})
    assert (result["content"], result["is_error"]) == (str(clients.home), False)
    assert blocks(first, "text")
    assert blocks(second, "text")
    usage = second[-1]["usage"]
    assert usage["cache_read_input_tokens"] > 0.8 * (
        usage["cache_read_input_tokens"] + usage["input_tokens"]
    )


def test_a_session_runs_a_command_and_goes_on(clients: Clients, server: RunningServer) -> None:
    session(clients, *ONE_TOOL)
    assert server.process.poll() is None


@pytest.mark.release("Claude Code with all its tools")
def test_a_session_with_all_tools_runs_a_command_and_goes_on(
    clients: Clients, server: RunningServer
) -> None:
    session(clients)
    assert server.process.poll() is None
