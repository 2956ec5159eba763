"""`ouzel run` chats with a server that has the model, else it loads the model itself."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouzel.demo import MODEL_DIRECTORY
from ouzel.terminal_chat.loop_thread import LoopThread
from tests.client.canned_server import CannedServer, canned_server, event_stream, json_answer
from tests.model_store.packages import make_environment, write_packaged_model
from tests.serve.forks import run_command

TEXT = '{"choices": [{"delta": {"content": "from the server"}, "finish_reason": "stop"}]}'


@pytest.fixture
def server() -> Iterator[CannedServer]:
    """Serves the models `tiny:1m` and `owl`."""
    models = json_answer("200 OK", '{"data": [{"id": "tiny:1m"}, {"id": "owl"}]}')

    def answer(path: str, body: bytes) -> bytes:
        if path == "/v1/models":
            return models
        if path == "/v1/chat/completions":
            return event_stream(TEXT, "[DONE]")
        return json_answer("404 Not Found", "{}")

    with LoopThread() as loop, loop.entered(canned_server(answer)) as server:
        yield server


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Returns variables with a catalogue of one model, which is broken."""
    write_packaged_model(tmp_path, b"no GGUF")
    # Nothing listens on the port 9 of a test's machine.
    return make_environment(tmp_path) | {"OUZEL_PORT": "9", "OPENAI_API_KEY": ""}


def run(*arguments: str, env: dict[str, str], text: str = "") -> tuple[int, str, str]:
    process = run_command("run", *arguments, environment=env, text=text)
    return process.returncode, process.stdout, process.stderr


@pytest.mark.parametrize("name", ["tiny:1m", "TINY:1M", "owl"])
def test_a_server_that_has_the_model_answers(
    name: str, server: CannedServer, environment: dict[str, str]
) -> None:
    status, output, errors = run(name, "--url", server.url, "-p", "hi", env=environment)
    assert (status, output) == (0, "from the server\n"), errors
    assert errors == f"ouzel: {name} is served at {server.url}\n"
    assert json.loads(server.bodies[-1])["model"] == name.lower()


def test_the_default_address_is_asked_first(
    server: CannedServer, environment: dict[str, str]
) -> None:
    port = server.url.rpartition(":")[2].removesuffix("/v1")
    status, output, errors = run("owl", env=environment | {"OUZEL_PORT": port}, text="hi")
    assert (status, output) == (0, "from the server\n"), errors


def test_the_sampling_of_the_catalogue_counts_unless_the_user_sets_it(
    server: CannedServer, environment: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "names.json"
    [entry] = json.loads(path.read_text())["models"]
    sampling = {"temperature": 0.5, "top_p": 0.25}
    path.write_text(json.dumps({"models": [entry | {"sampling": sampling}]}))
    arguments = ("tiny:1m", "--url", server.url, "-p", "hi", "--set", "top_p=0.75")
    status, _, errors = run(*arguments, env=environment)
    assert status == 0, errors
    sent = json.loads(server.bodies[-1])
    assert (sent["temperature"], sent["top_p"]) == (0.5, 0.75)


def test_a_model_that_no_server_has_is_loaded_here(
    server: CannedServer, environment: dict[str, str]
) -> None:
    model = str(MODEL_DIRECTORY)
    arguments = (model, "--url", server.url, "-p", "What is 17 plus 25?")
    status, output, errors = run(*arguments, "--set", "temperature=0", env=environment)
    assert status == 0, errors
    assert output.strip()
    assert "from the server" not in output
    assert f"{server.url} does not serve {model}: this program loads it" in errors


def test_options_of_serve_load_the_model_here(
    server: CannedServer, environment: dict[str, str]
) -> None:
    port = server.url.rpartition(":")[2].removesuffix("/v1")
    env = environment | {"OUZEL_PORT": port}
    status, _, errors = run("tiny:1m", "-p", "hi", "--weights", "int4", env=env)
    assert status == 1
    assert "Tiny-F32.gguf" in errors  # the model of the test is broken
    assert not server.bodies


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "MODEL is required, such as smollm2:135m"),
        (("owl", "--model", "x"), "--model: write MODEL without an option, given 'x'"),
        (("owl", "--url", "x", "--weights", "int4"), "--url: cannot be used with options of"),
        (("owl",), "there is no directory or GGUF file owl, and the catalogue has no such"),
        (("owl", "--url", "http://127.0.0.1:9"), "http://127.0.0.1:9: the server cannot be"),
    ],
    ids=["no model", "--model", "both", "unknown", "no server"],
)
def test_wrong_options_are_refused(
    arguments: tuple[str, ...], message: str, environment: dict[str, str]
) -> None:
    status, output, errors = run(*arguments, env=environment, text="hi")
    assert (status > 0, output) == (True, "")
    assert message in errors


def test_the_help_describes_the_command() -> None:
    status, output, _ = run("--help", env=dict(os.environ))
    assert status == 0
    assert "ouzel run MODEL" in output
