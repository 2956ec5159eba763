"""The command as a user meets it: a process, signals, broken models."""

import json
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import httpx
import psutil
import pytest
from openai import OpenAI
from websockets.exceptions import ConnectionClosed

from ouzel.demo import MODEL_DIRECTORY
from tests.serve.running import RunningServer, failure, send, serving, start

QUESTION = {"model": "ouzel-demo", "messages": [{"role": "user", "content": "Count from 1 to 30."}]}


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def server(cache_dir: Path) -> Iterator[RunningServer]:
    with serving(cache_dir=cache_dir) as server:
        yield server


def wait_until_healthy(server: RunningServer) -> None:
    while httpx.get(f"{server.root}/health").status_code != 200:
        time.sleep(0.02)


def test_the_printed_curl_line_works(server: RunningServer) -> None:
    answer = send(server.curl)

    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"]["content"]


def test_the_openai_client_streams(server: RunningServer) -> None:
    client = OpenAI(base_url=server.url, api_key="none")
    ask = {"model": "ouzel-demo", "messages": QUESTION["messages"], "temperature": 0}

    whole = client.chat.completions.create(**ask)  # type: ignore[call-overload]
    chunks = list(client.chat.completions.create(**ask, stream=True))  # type: ignore[call-overload]

    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        == whole.choices[0].message.content
    )
    assert [chunk.choices[0].finish_reason for chunk in chunks][-1] == whole.choices[
        0
    ].finish_reason


def test_a_killed_engine_is_replaced_and_no_request_hangs(server: RunningServer) -> None:
    engine = server.engine_process()
    endless = QUESTION | {"stream": True, "ignore_eos": True}
    with httpx.stream(
        "POST", f"{server.url}/chat/completions", json=endless, timeout=None
    ) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("data: {")
        engine.send_signal(signal.SIGKILL)
        rest = [line for line in lines if line]

    assert "error" in json.loads(rest[-1].removeprefix("data: "))
    wait_until_healthy(server)
    assert (
        httpx.post(f"{server.url}/chat/completions", json=QUESTION, timeout=None).status_code == 200
    )
    assert server.engine_process().pid != engine.pid


def test_sigterm_drains_and_exits_with_zero(cache_dir: Path) -> None:
    with serving(cache_dir=cache_dir) as server:
        engine = server.engine_process()
        body = QUESTION | {"stream": True, "ignore_eos": True, "max_tokens": 200}
        with httpx.stream(
            "POST", f"{server.url}/chat/completions", json=body, timeout=None
        ) as response:
            lines = response.iter_lines()
            next(lines)
            server.process.send_signal(signal.SIGTERM)
            rest = [line for line in lines if line]

        assert rest[-1] == "data: [DONE]"
        assert (
            json.loads(rest[-2].removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
        )
        assert server.process.wait() == 0
        assert not engine.is_running()


def test_the_engine_ends_with_a_server_that_is_killed_before_it_has_read_everything(
    cache_dir: Path,
) -> None:
    with serving(cache_dir=cache_dir) as server:
        engine = server.engine_process()
        body = QUESTION | {"stream": True, "ignore_eos": True, "max_tokens": 200}
        with httpx.stream(
            "POST", f"{server.url}/chat/completions", json=body, timeout=None
        ) as response:
            next(response.iter_lines())
            server.process.send_signal(signal.SIGSTOP)
            wait_until_idle(engine)
            server.process.kill()

        engine.wait()


def wait_until_idle(process: psutil.Process) -> None:
    before = -1.0
    while (used_s := sum(process.cpu_times()[:2])) > before:
        before = used_s
        time.sleep(0.2)


def test_sigterm_drains_the_responses_of_a_websocket(cache_dir: Path) -> None:
    with (
        serving(cache_dir=cache_dir) as server,
        OpenAI(base_url=server.url, api_key="none") as client,
        client.responses.connect() as connection,
    ):
        ask = {
            "type": "response.create",
            "model": "ouzel-demo",
            "input": "Count.",
            "ignore_eos": True,
        }
        connection.send_raw(json.dumps(ask | {"max_output_tokens": 200}))
        assert connection.recv().type == "response.created"
        server.process.send_signal(signal.SIGTERM)
        last = next(event for event in connection if event.type == "response.incomplete")
        assert last.response.usage is not None and last.response.usage.output_tokens == 200
        with pytest.raises(ConnectionClosed) as closed:
            connection.recv()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
        assert server.process.wait() == 0


@pytest.mark.release("signals: a grace, a second signal")
def test_sigterm_takes_requests_while_the_grace_lasts_and_a_second_one_ends_it(
    cache_dir: Path,
) -> None:
    with serving("--drain-grace-s", "80000", "--metrics-port", "0", cache_dir=cache_dir) as server:
        server.process.send_signal(signal.SIGTERM)
        while httpx.get(f"{server.metrics_root}/health").status_code == 200:
            time.sleep(0.01)

        assert httpx.get(f"{server.root}/health").json()["status"] == "leaving"
        assert httpx.get(f"{server.metrics_root}/v2/health/live").status_code == 200
        assert (
            httpx.post(f"{server.url}/chat/completions", json=QUESTION, timeout=None).status_code
            == 200
        )

        time.sleep(1.1)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait() == 0


def test_a_second_sigterm_stops_at_once(cache_dir: Path) -> None:
    with serving(cache_dir=cache_dir) as server:
        body = QUESTION | {"stream": True, "ignore_eos": True}
        with httpx.stream(
            "POST", f"{server.url}/chat/completions", json=body, timeout=None
        ) as response:
            lines = response.iter_lines()
            next(lines)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(1.1)
            server.process.send_signal(signal.SIGTERM)
            list(lines)

        _, log = server.process.communicate()
        assert (server.process.returncode, log) == (0, "")


def broken_copy(directory: Path) -> Path:
    return copytree(MODEL_DIRECTORY, directory / "model")


def test_a_missing_directory(cache_dir: Path) -> None:
    assert "there is no directory or GGUF file /nowhere/at/all" in failure(
        "/nowhere/at/all", cache_dir=cache_dir
    )


def test_an_empty_directory(cache_dir: Path, tmp_path: Path) -> None:
    assert "config.json" in failure(str(tmp_path), cache_dir=cache_dir)


@pytest.mark.release("starts that are refused by the engine")
def test_truncated_weights(cache_dir: Path, tmp_path: Path) -> None:
    directory = broken_copy(tmp_path)
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100_000])

    assert "model.safetensors" in failure(str(directory), cache_dir=cache_dir)


@pytest.mark.release("starts that are refused by the engine")
def test_an_unknown_model_type(cache_dir: Path, tmp_path: Path) -> None:
    directory = broken_copy(tmp_path)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"model_type": "mamba9"}))

    message = failure(str(directory), cache_dir=cache_dir)

    assert "mamba9" in message
    assert "qwen3" in message, "names what is supported"


@pytest.mark.release("starts that are refused by the engine")
def test_a_missing_tokenizer(cache_dir: Path, tmp_path: Path) -> None:
    directory = broken_copy(tmp_path)
    (directory / "tokenizer.json").unlink()

    assert "tokenizer.json" in failure(str(directory), cache_dir=cache_dir)


def test_a_models_own_response_template_is_read(cache_dir: Path, tmp_path: Path) -> None:
    directory = broken_copy(tmp_path)
    config = json.loads((directory / "tokenizer_config.json").read_text())
    marks = {"open": "<think>", "close": "</think>", "content": "text"}
    config["response_template"] = {
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {"thinking": marks},
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config))
    options = ("--reasoning-parser", "response_template", "--tool-parser", "none")

    with serving(str(directory), *options, cache_dir=cache_dir) as server:
        body = QUESTION | {"model": "model", "enable_thinking": True, "temperature": 0}
        answer = httpx.post(f"{server.url}/chat/completions", json=body, timeout=None).json()

    message = answer["choices"][0]["message"]
    assert message["reasoning_content"] and "think>" not in message["reasoning_content"]
    assert message["content"] and "think>" not in message["content"]


def test_a_response_template_that_is_not_there(cache_dir: Path) -> None:
    message = failure("--tool-parser", "response_template", cache_dir=cache_dir)
    assert "tokenizer_config.json has no response_template" in message


def test_a_model_without_chat_template_completes_but_does_not_chat(
    cache_dir: Path, tmp_path: Path
) -> None:
    directory = broken_copy(tmp_path)
    (directory / "chat_template.jinja").unlink()

    with serving(str(directory), "--served-model-name", "plain", cache_dir=cache_dir) as server:
        assert "/v1/completions" in server.curl
        completion = httpx.post(
            f"{server.url}/completions",
            json={"model": "plain", "prompt": "Hello", "max_tokens": 5},
            timeout=None,
        )
        chat = httpx.post(
            f"{server.url}/chat/completions", json=QUESTION | {"model": "plain"}, timeout=None
        )

    assert completion.status_code == 200
    assert chat.status_code == 400
    assert "chat template" in chat.json()["error"]["message"]


def test_a_port_in_use(cache_dir: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        message = failure("--port", str(port), cache_dir=cache_dir)

    assert f"cannot listen on 127.0.0.1 port {port}" in message


def test_two_servers_that_start_on_one_port(cache_dir: Path) -> None:
    """Both can bind it before either listens; the slower one must not believe that it serves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    processes = [start("--port", port, cache_dir=cache_dir) for _ in range(2)]
    while all(process.poll() is None for process in processes):
        time.sleep(0.02)
    [loser] = [process for process in processes if process.poll() is not None]
    [winner] = [process for process in processes if process is not loser]
    winner.terminate()
    winner.communicate()

    errors = loser.communicate()[1]
    assert loser.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in errors
    assert "Traceback" not in errors
    assert winner.returncode == 0


@pytest.mark.release("signals: a grace, a second signal")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_model_loads(cache_dir: Path, number: signal.Signals) -> None:
    process = start(cache_dir=cache_dir, is_executed=True)
    while not psutil.Process(process.pid).children():
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate()

    assert process.returncode == 0
    assert "Traceback" not in errors


def test_options_that_contradict_each_other(cache_dir: Path) -> None:
    message = failure("--kv-cache-dtype", "f32", "--precision", "bf16", cache_dir=cache_dir)

    assert "--kv-cache-dtype" in message
    assert "--precision" in message
