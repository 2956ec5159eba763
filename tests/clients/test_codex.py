"""Codex CLI: a session of two turns, in each of which the model has it run a command."""

import json

import pytest

from tests.clients.clients import Clients, packages
from tests.serve.running import RunningServer

UNATTENDED = ("--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")


@pytest.fixture
def codex(clients: Clients) -> Clients:
    (clients.home / ".codex").mkdir()
    (clients.home / ".codex" / "config.toml").write_text(
        clients.block("codex", "toml", containing="wire_api")
    )
    return clients


def turn(codex: Clients, *arguments: str) -> tuple[list[str], dict[str, int]]:
    """Runs one turn; returns the output of its commands, and the session's usage so far."""
    program = packages("codex") / "node_modules" / ".bin" / "codex"
    events = [
        json.loads(line) for line in codex.run(program, "exec", *arguments).stdout.splitlines()
    ]
    assert not [event for event in events if event["type"] in ("error", "turn.failed")]
    ended = [event["item"] for event in events if event["type"] == "item.completed"]
    assert [item for item in ended if item["type"] == "agent_message"]
    [completed] = [event for event in events if event["type"] == "turn.completed"]
    outputs = [item["aggregated_output"] for item in ended if item["type"] == "command_execution"]
    return outputs, completed["usage"]


@pytest.mark.release("a session of Codex CLI")
def test_a_session_runs_commands_in_two_turns(codex: Clients, server: RunningServer) -> None:
    first, before = turn(codex, *UNATTENDED, "Execute the command with cmd 'pwd'.")
    second, usage = turn(
        codex, "resume", "--last", *UNATTENDED, "Execute the command with cmd 'echo hello'."
    )

    assert first == [f"{codex.home}\n"]
    assert second == ["hello\n"]
    num_input, num_cached = (
        usage[name] - before[name] for name in ("input_tokens", "cached_input_tokens")
    )
    assert num_input > 2 * 14_000  # each turn sends two requests
    assert num_cached > 0.9 * num_input
    assert server.process.poll() is None
