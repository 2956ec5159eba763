"""`ouzel launch` shows the settings, names missing programs, and ends with the client's status."""

import pytest

from ouzel.launch.table import CLIENTS
from tests.launch.launching import Machine, ModelServer, model_server


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_is_not_installed_is_named_with_its_installation(
    machine: Machine, server: ModelServer, client: str
) -> None:
    ended = machine.launch(client, "--url", server.url)

    assert ended.status == 1
    assert f"{CLIENTS[client].title} is not installed" in ended.errors
    assert CLIENTS[client].installation in ended.errors
    assert not machine.settings(client).exists()


def test_without_a_server_the_message_says_how_to_start_one(machine: Machine) -> None:
    with model_server() as server:
        url = server.url
    machine.install("codex")
    ended = machine.launch("codex", "--url", url)

    assert ended.status == 1
    assert f"no server answers at {url}" in ended.errors
    assert "ouzel serve MODEL" in ended.errors
    assert "--serve MODEL" in ended.errors
    assert machine.started() is None


def test_the_status_of_the_client_is_the_status_of_the_command(
    machine: Machine, server: ModelServer
) -> None:
    machine.install("continue", status=7)

    assert machine.launch("continue", "--url", server.url).status == 7


def test_files_and_variables_are_shown_on_standard_error(
    machine: Machine, server: ModelServer
) -> None:
    machine.install("qwen")
    ended = machine.launch("qwen", "--url", server.url, "--", "a question")

    path = machine.settings("qwen") / "settings.json"
    lines = ended.errors.splitlines()
    assert f"# settings: {path}" in lines
    assert f"export QWEN_CODE_SYSTEM_SETTINGS_PATH={path}" in lines
    assert lines[-1] == "qwen --auth-type openai 'a question'"
    assert ended.output == "answer of the client\n"


def test_print_writes_the_settings_and_starts_nothing(
    machine: Machine, server: ModelServer
) -> None:
    machine.install("claude")
    ended = machine.launch("claude", "--url", server.url, "--print")

    assert ended.status == 0
    assert machine.started() is None
    path = machine.settings("claude") / "ouzel-settings.json"
    assert path.exists()
    assert "unset ANTHROPIC_API_KEY" in ended.output.splitlines()
    assert f"export CLAUDE_CONFIG_DIR={path.parent}" in ended.output.splitlines()
    assert ended.output.splitlines()[-1] == f"claude --settings {path}"


def test_a_dry_run_writes_nothing_and_shows_the_files(
    machine: Machine, server: ModelServer
) -> None:
    ended = machine.launch("continue", "--url", server.url, "--dry-run")

    assert ended.status == 0
    path = machine.settings("continue") / "config.yaml"
    assert f"# {path}" in ended.output
    assert "contextLength: 32768" in ended.output
    assert ended.output.splitlines()[-1] == f"cn --config {path}"
    assert not path.parent.exists()


def test_a_refused_key_is_reported_as_the_server_says(machine: Machine) -> None:
    with model_server(api_key="right") as server:
        ended = machine.launch("codex", "--url", server.url, "--api-key", "wrong", "--print")

    assert ended.status == 1
    assert ended.errors == "ouzel: 401: the API key is missing or wrong\n"


def test_the_key_of_the_environment_is_used(machine: Machine) -> None:
    with model_server(api_key="right") as server:
        ended = machine.launch(
            "codex", "--url", server.url, "--print", variables={"OPENAI_API_KEY": "right"}
        )

    assert ended.status == 0


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--model", "x"), 1, "given 'x'; it has e, m, org/other"),
        (("--model", "e"), 1, "is no chat model"),
        (("--serve", "a", "--print"), 2, "--serve: cannot be used with --print"),
    ],
)
def test_wrong_options_are_refused(
    machine: Machine, server: ModelServer, arguments: tuple[str, ...], status: int, message: str
) -> None:
    machine.install("codex")
    ended = machine.launch("codex", "--url", server.url, *arguments)

    assert ended.status == status
    assert message in ended.errors
    assert machine.started() is None


@pytest.mark.parametrize("url", ["http://me:secret@127.0.0.1:1", "me:secret@127.0.0.1:1"])
def test_a_url_with_a_password_is_refused_without_showing_it(machine: Machine, url: str) -> None:
    ended = machine.launch("codex", "--url", url)
    assert ended.status == 2
    assert "must have no user name and password" in ended.errors
    assert "secret" not in ended.errors


def test_a_unix_socket_is_refused(machine: Machine) -> None:
    ended = machine.launch("codex", "--url", "unix:/tmp/socket")

    assert ended.status == 2
    assert "--url: must be an http or https URL" in ended.errors


def test_a_server_without_context_lengths_is_refused(machine: Machine) -> None:
    with model_server(listed={"data": [{"id": "m"}]}) as server:
        ended = machine.launch("codex", "--url", server.url, "--print")

    assert ended.status == 1
    assert "does not tell the context length of m" in ended.errors


def test_a_short_context_is_mentioned(machine: Machine, server: ModelServer) -> None:
    long = machine.launch("codex", "--url", server.url, "--print")
    short = machine.launch("codex", "--url", server.url, "--print", "--model", "org/other")

    assert "The context is short" not in long.output
    assert "The context is short" in short.output
