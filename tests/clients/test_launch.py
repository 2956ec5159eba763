"""`ouzel launch` starts the real clients, and each of them shows an answer of the server."""

import os
import sys
from pathlib import Path

import pytest

from tests.clients.clients import NODE_22, Clients, node_directory, packages

pytestmark = pytest.mark.serves
EXECUTE_PWD = "Execute the bash with the command 'pwd'."
HELLO = "Say hello"
UNATTENDED = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
# Each client's set of packages, arguments for one answer, and a part of the answer.
ANSWERS = {
    "codex": (
        "codex",
        ("exec", *UNATTENDED, "Execute the command with cmd 'pwd'."),
        "The tool says: ",
    ),
    "opencode": ("opencode", ("run", HELLO), "Hello"),
    "qwen": ("qwen-code", (HELLO,), "Hello"),
    "aider": ("aider", ("--no-git", "--yes-always", "--no-pretty", "--message", HELLO), "Tokens: "),
    "continue": ("continue", ("-p", HELLO), "Hello"),
}
PATHS = {"claude": "/v1/messages", "codex": "/v1/responses"}
CHATS = "/v1/chat/completions"
OFFLINE = {
    "AIDER_ANALYTICS": "false",
    "AIDER_CHECK_UPDATE": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
}


def launch(clients: Clients, client: str, packages_name: str, *arguments: str) -> str:
    """Launches a client under Node 22 and returns its output."""
    directory = packages(packages_name)
    programs = [directory / "node_modules" / ".bin", directory / "bin"]
    if packages_name not in ("aider", "codex", "claude-code"):
        programs.append(node_directory(NODE_22))
    search_path = os.pathsep.join([*map(str, programs), os.environ["PATH"]])
    command = (sys.executable, "-m", "ouzel", "launch", client, "--url", clients.server.root)
    with clients.accepted(f"ouzel launch {client}", PATHS.get(client, CHATS)):
        ended = clients.run(
            *command, "--", *arguments, environment={**OFFLINE, "PATH": search_path}
        )
    settings = clients.home / ".local" / "share" / "ouzel" / "launch" / client
    assert list(settings.iterdir())
    return ended.stdout


def test_claude_code_runs_a_command(clients: Clients) -> None:
    unattended = ("-p", "--tools", "Bash", "--allowed-tools", "Bash", "--")
    output = launch(clients, "claude", "claude-code", *unattended, EXECUTE_PWD)

    assert "The tool says" in output
    assert not Path(clients.home / ".claude").exists()
    assert not Path(clients.home / ".claude.json").exists()


@pytest.mark.release("coding agents that `ouzel launch` starts")
@pytest.mark.parametrize("client", ANSWERS)
def test_a_client_shows_an_answer(clients: Clients, client: str) -> None:
    packages_name, arguments, answer = ANSWERS[client]

    assert answer in launch(clients, client, packages_name, *arguments)
