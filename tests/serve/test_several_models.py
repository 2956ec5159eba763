"""Servers of several models and of several engines, as users start them."""

import os
import re
import signal
import time
from pathlib import Path

import httpx
import psutil
import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.serve.running import failure, serving


def names(http: httpx.Client) -> list[str]:
    return [model["id"] for model in http.get("/v1/models").json()["data"]]


def answer(http: httpx.Client, model: str) -> str:
    body = {"model": model, "messages": [{"role": "user", "content": "12+5?"}], "temperature": 0}
    response = http.post("/v1/chat/completions", json=body)
    assert response.json()["model"] == model
    return str(response.json()["choices"][0]["message"]["content"])


def statuses(http: httpx.Client) -> list[str]:
    return [engine["status"] for engine in http.get("/health").json()["engines"]]


def test_models_come_and_go_as_the_file_says_on_sighup(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    environment = {**os.environ, "OUZEL_ADMIN_API_KEY": "sk-admin"}
    file.write_text(
        f"models:\n- {{name: a, model: {MODEL_DIRECTORY}, max_model_len: 512}}\n"
        f"- b={MODEL_DIRECTORY}\n"
    )
    with (
        serving(
            "--config", str(file), "--no-store", cache_dir=tmp_path, environment=environment
        ) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        assert names(http) == ["a", "b"]
        assert answer(http, "a") == answer(http, "b") == "12 + 5 = 17"
        file.write_text(
            f"models:\n- c={MODEL_DIRECTORY}\n- broken=/nowhere\n- b={MODEL_DIRECTORY}\n"
        )
        server.process.send_signal(signal.SIGHUP)
        while names(http) != ["c", "b"]:
            time.sleep(0.05)
        assert answer(http, "c") == "12 + 5 = 17"
        assert len(server.engine_processes()) == 2
        file.write_text(f"models:\n- c=/nowhere\n- b={MODEL_DIRECTORY}\n")
        assert (
            http.post("/v1/config/reload", headers={"authorization": "Bearer sk-admin"}).status_code
            == 200
        )
        assert names(http) == ["c", "b"]


@pytest.mark.release("an entry of the file that has the name of MODEL")
def test_an_entry_with_the_name_of_model_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text("port: 0\n")
    environment = {**os.environ, "OUZEL_ADMIN_API_KEY": "sk-admin"}
    flags = ("--served-model-name", "main", "--config", str(file), "--no-store")
    with (
        serving(
            str(MODEL_DIRECTORY), *flags, cache_dir=tmp_path, environment=environment
        ) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        for max_model_len in (512, 600):
            entry = f"{{name: main, model: {MODEL_DIRECTORY}, max_model_len: {max_model_len}}}"
            file.write_text(f"models:\n- {entry}\n")
            http.post("/v1/config/reload", headers={"authorization": "Bearer sk-admin"})
        [model] = http.get("/v1/models").json()["data"]

    assert (model["id"], model["max_model_len"]) == ("main", 4096)


@pytest.mark.release("a replica that is killed, a server that dies beside another")
def test_one_of_two_replicas_is_killed_and_the_server_goes_on(tmp_path: Path) -> None:
    if psutil.cpu_count() == 1:
        pytest.skip("two replicas need two processors")
    with (
        serving("--replicas", "2", "--no-store", cache_dir=tmp_path, is_executed=True) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        processes = server.engine_processes()
        shares = [set(process.cpu_affinity() or ()) for process in processes]
        processes[0].kill()
        while psutil.pid_exists(processes[0].pid):  # until that is noticed
            time.sleep(0.01)
        answers = {answer(http, "ouzel-demo") for _ in range(4)}
        page = http.get("/metrics").text
        while statuses(http) != ["ready", "ready"]:
            time.sleep(0.05)

    assert len(processes) == 2
    assert not shares[0] & shares[1]
    assert answers == {"12 + 5 = 17"}
    assert [
        line.partition(",")[0]
        for line in page.splitlines()
        if re.match(r"\w+[:_]e2e\w+_count", line)
    ] == [
        'ouzel_e2e_request_latency_seconds_count{engine="0"',
        'ouzel_e2e_request_latency_seconds_count{engine="1"',
        'vllm:e2e_request_latency_seconds_count{engine="0"',
    ]
    ends = re.findall(
        r'^ouzel_request_success_total\{engine="(\d)",finished_reason="stop",.*\} (\d)',
        page,
        re.MULTILINE,
    )
    assert sum(int(count) for _, count in ends) == 4


def test_a_model_that_cannot_be_loaded_stops_the_start_and_is_named(tmp_path: Path) -> None:
    said = failure("--model", f"a={MODEL_DIRECTORY}", "--model", "b=/nowhere", cache_dir=tmp_path)

    assert said == "ouzel: there is no directory or GGUF file /nowhere\n"


def test_a_name_that_two_models_have_is_told_before_either_is_loaded(tmp_path: Path) -> None:
    directory = str(MODEL_DIRECTORY)
    said = failure(directory, "--model", f"{MODEL_DIRECTORY.name}={directory}", cache_dir=tmp_path)

    name = repr(MODEL_DIRECTORY.name)
    assert said == f"ouzel: --model: each must have a name of its own, given {name} twice\n"
