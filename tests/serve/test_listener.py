"""Servers in processes of their own listen with keys, with TLS and on unix sockets."""

import json
import socket
import ssl
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest
import trustme
from openai.types.websocket_connection_options import WebSocketConnectionOptions
from websockets.exceptions import InvalidStatus
from websockets.sync.client import unix_connect

from tests.serve.running import RunningServer, failure, send, serving, start

KEY = "sk-of-the-test"
ASK = {
    "model": "ouzel-demo",
    "messages": [{"role": "user", "content": "Hello!"}],
    "temperature": 0,
    "max_tokens": 8,
}


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Writes a file with the certificate and its key."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        path
    )
    return str(path)


@pytest.fixture(scope="module")
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Returns a client's context that trusts the authority."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.fixture(scope="module")
def keys_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("keys") / "keys.txt"
    path.write_text(f"# ours\nsk-another\n{KEY}\n")
    return str(path)


@pytest.fixture(scope="module")
def secured(cache_dir: Path, certificate: str, keys_file: str) -> Iterator[RunningServer]:
    options = ("--ssl-certfile", certificate, "--api-key-file", keys_file, "--metrics-port", "0")
    with serving(*options, cache_dir=cache_dir) as server:
        yield server


def test_the_printed_curl_line_speaks_https_and_takes_the_key_from_the_shell(
    secured: RunningServer, trusting: ssl.SSLContext
) -> None:
    assert "curl https://" in secured.curl
    assert KEY not in secured.curl

    assert send(secured.curl, api_key=KEY, verify=trusting)["choices"][0]["message"]["content"]
    assert (
        send(secured.curl, api_key="sk-wrong", verify=trusting)["error"]["code"]
        == "invalid_api_key"
    )


def test_the_openai_client_over_tls_with_a_wrong_key_and_a_right_one(
    secured: RunningServer, trusting: ssl.SSLContext
) -> None:
    with openai.DefaultHttpxClient(verify=trusting, timeout=None) as transport:
        wrong = openai.OpenAI(base_url=secured.url, api_key="sk-wrong", http_client=transport)
        with pytest.raises(openai.AuthenticationError):
            wrong.chat.completions.create(**ASK)  # type: ignore[call-overload]

        right = openai.OpenAI(base_url=secured.url, api_key=KEY, http_client=transport)
        whole = right.chat.completions.create(**ASK)  # type: ignore[call-overload]
        stream = right.chat.completions.create(**ASK, stream=True)  # type: ignore[call-overload]
        chunks = list(stream)
    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        == whole.choices[0].message.content
    )


async def test_a_websocket_over_tls_with_a_wrong_key_and_a_right_one(
    secured: RunningServer, trusting: ssl.SSLContext
) -> None:
    """Uses the asynchronous client.

    The synchronous client has two threads at one TLS socket, which sometimes wait for ever.
    """
    # The client hands the option to websockets, and has no type for it.
    options: WebSocketConnectionOptions = {"ssl": trusting}  # type: ignore[typeddict-unknown-key]
    async with openai.AsyncOpenAI(base_url=secured.url, api_key="sk-wrong") as wrong:
        with pytest.raises(InvalidStatus) as refused:
            await wrong.responses.connect(websocket_connection_options=options).enter()
    assert refused.value.response.status_code == 401
    assert json.loads(refused.value.response.body or b"")["error"]["code"] == "invalid_api_key"

    async with (
        openai.AsyncOpenAI(base_url=secured.url, api_key=KEY) as right,
        right.responses.connect(websocket_connection_options=options) as connection,
    ):
        await connection.response.create(
            model="ouzel-demo", input="What is 17 plus 25?", temperature=0
        )
        end = await anext(event async for event in connection if event.type == "response.completed")
    assert "42" in end.response.output_text


def test_the_tls_port_does_not_speak_plain_http(secured: RunningServer) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{secured.root.replace('https', 'http')}/health")


def test_the_port_of_metrics_speaks_plain_http_and_needs_no_key(secured: RunningServer) -> None:
    assert httpx.get(f"{secured.metrics_root}/metrics").text.startswith("# HELP ")
    assert httpx.get(f"{secured.metrics_root}/v2/health/live").status_code == 200
    assert httpx.get(f"{secured.metrics_root}/v1/models").status_code == 404


def test_a_port_of_metrics_that_is_in_use(cache_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]

        message = failure("--metrics-port", str(port), cache_dir=cache_dir)

    assert message.startswith(
        f"ouzel: cannot listen on 127.0.0.1 port {port}: Address already in use; "
    )
    assert message.endswith(" choose another port with --metrics-port (0: a free port)\n")


def test_a_client_must_show_a_certificate_where_it_is_required(
    cache_dir: Path, certificate: str, authority: trustme.CA, tmp_path: Path
) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    options = ("--ssl-certfile", certificate, "--ssl-ca-certs", str(tmp_path / "ca.pem"))
    stranger, known = ssl.create_default_context(), ssl.create_default_context()
    authority.configure_trust(stranger)
    authority.configure_trust(known)
    authority.issue_cert("client@example.org").configure_cert(known)

    with serving(*options, "--ssl-client-auth", "required", cache_dir=cache_dir) as server:
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{server.root}/health", verify=stranger)
        assert httpx.get(f"{server.root}/health", verify=known).status_code == 200


def test_a_certificate_that_is_not_there(cache_dir: Path) -> None:
    message = failure("--ssl-certfile", "/nowhere/cert.pem", cache_dir=cache_dir)

    assert "--ssl-certfile /nowhere/cert.pem: must be a file that can be read" in message


def test_no_key_is_ever_shown(cache_dir: Path) -> None:
    with serving("--api-key", KEY, "--log-level", "debug", cache_dir=cache_dir) as server:
        for key in (KEY, "sk-strange"):
            headers = {"authorization": f"Bearer {key}"}
            httpx.post(f"{server.url}/chat/completions", json=ASK, headers=headers, timeout=None)
        engine_arguments = server.engine_process().cmdline()
        server.process.terminate()
        assert server.process.stdout is not None
        assert server.process.stderr is not None
        shown = server.curl + server.process.stdout.read() + server.process.stderr.read()

    assert "POST /v1/chat/completions 401" in shown
    assert "sk-" not in shown
    assert KEY not in " ".join(engine_arguments)


def test_a_unix_socket(cache_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "ouzel.sock"
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(path))
    stale.close()

    with serving("--uds", str(path), "--metrics-port", "0", cache_dir=cache_dir) as server:
        assert httpx.get(f"{server.metrics_root}/health").status_code == 200
        assert f"--unix-socket {path}" in server.curl
        assert send(server.curl)["choices"][0]["message"]["content"]
        assert f"cannot listen on {path}: it is in use" in failure(
            "--uds", str(path), cache_dir=cache_dir
        )
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert send(server.curl)["object"] == "chat.completion", "the first server is as it was"
        with unix_connect(
            str(path), uri="ws://localhost/v1/responses", open_timeout=None
        ) as connection:
            connection.send(
                json.dumps({"type": "response.create", "model": "ouzel-demo", "input": "Hello!"})
            )
            assert json.loads(connection.recv())["type"] == "response.created"

        server.process.terminate()
        assert server.process.wait() == 0
        assert not path.exists()


def test_a_file_is_never_replaced_by_a_socket(cache_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("text")

    assert f"cannot listen on {path}: the path is a file" in failure(
        "--uds", str(path), cache_dir=cache_dir
    )
    assert path.read_text() == "text"


@pytest.mark.release("two servers that start on one socket, as two on one port do in each run")
def test_only_one_of_two_servers_on_one_socket_serves(cache_dir: Path, tmp_path: Path) -> None:
    path = str(tmp_path / "ouzel.sock")
    processes = [start("--uds", path, cache_dir=cache_dir) for _ in range(2)]
    while all(process.poll() is None for process in processes):
        time.sleep(0.02)
    [loser] = [process for process in processes if process.poll() is not None]
    [winner] = [process for process in processes if process is not loser]
    errors = loser.communicate()[1]
    assert winner.stdout is not None
    while "curl" not in winner.stdout.readline():
        pass
    with httpx.Client(transport=httpx.HTTPTransport(uds=path)) as client:
        assert client.get("http://localhost/health").status_code == 200
    winner.terminate()
    winner.communicate()

    assert loser.returncode == 1
    assert f"cannot listen on {path}" in errors
    assert "Traceback" not in errors
    assert winner.returncode == 0
