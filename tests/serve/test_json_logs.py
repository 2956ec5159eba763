"""With `--log-format json`, each line of both processes of a server is an object."""

import json
import socket
from pathlib import Path
from shutil import copytree
from typing import Any  # JSON

import httpx

from ouzel.demo import MODEL_DIRECTORY
from tests.serve.running import failure, serving

ASK = {"model": "ouzel-demo", "messages": [{"role": "user", "content": "Hello!"}], "max_tokens": 4}


def read_lines(errors: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in errors.splitlines()]


def test_both_processes_and_libraries_write_json(tmp_path: Path) -> None:
    with serving("--log-format", "json", "--log-level", "info", cache_dir=tmp_path) as server:
        httpx.post(
            f"{server.url}/chat/completions",
            json=ASK,
            headers={"x-request-id": "mine"},
            timeout=None,
        )
        httpx.get(f"{server.root}/nowhere")
        address = httpx.URL(server.url)
        with socket.create_connection((address.host, address.port or 0)) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            connection.recv(1024)
        server.process.terminate()
        lines = read_lines(server.process.communicate()[1])

    [asked] = [line for line in lines if line.get("request_id") == "mine"]
    assert asked["message"].startswith(
        "POST /v1/chat/completions 200 model=ouzel-demo prompt_tokens="
    )
    assert (asked["method"], asked["path"], asked["status"]) == (
        "POST",
        "/v1/chat/completions",
        200,
    )
    assert (asked["model"], asked["completion_tokens"], asked["finish"]) == (
        "ouzel-demo",
        4,
        "length",
    )
    assert 0 < asked["ttft_s"] <= asked["duration_s"]
    assert asked["prompt_tokens"] > 0
    assert [line["status"] for line in lines if line.get("path") == "/nowhere"] == [404]
    loggers = {line["logger"] for line in lines}
    assert "ouzel.backends.openvino" in loggers, "the engine's process"
    assert [line["status"] for line in lines if line.get("path") == "-"] == [400], (
        "of what is no HTTP"
    )


def test_a_start_that_fails_is_told_in_json(tmp_path: Path) -> None:
    directory = copytree(MODEL_DIRECTORY, tmp_path / "model")
    weights = directory / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100_000])

    lines = read_lines(failure(str(directory), "--log-format", "json", cache_dir=tmp_path))

    assert (lines[-1]["level"], lines[-1]["logger"]) == ("CRITICAL", "ouzel.cli.app")
    assert "model.safetensors" in lines[-1]["message"]
