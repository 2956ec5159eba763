"""Models of a directory are loaded for requests and unloaded, by a real server."""

import asyncio
import json
import os
import random
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from ouzel.demo import MODEL_DIRECTORY
from tests.serve.running import RunningServer, serving

ADMIN = {"authorization": "Bearer sk-admin"}
ENVIRONMENT = {**os.environ, "OUZEL_ADMIN_API_KEY": "sk-admin"}
QUESTIONS = [f"{a}+{b}?" for a in (12, 31) for b in (5, 8, 24)]


def copy_demo(directory: Path) -> Path:
    """Links the files of the demo model."""
    directory.mkdir(parents=True)
    for path in MODEL_DIRECTORY.iterdir():
        (directory / path.name).symlink_to(path)
    return directory


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("models")
    for name in ("a", "b", "org/c"):
        copy_demo(directory / name)
    broken = copy_demo(directory / "broken")
    (broken / "config.json").unlink()
    (broken / "config.json").write_text('{"model_type": "qwen3"}')
    (directory / "notes.txt").write_text("not a model")
    return directory


@pytest.fixture(scope="module")
def server(models_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(
        *("--models-dir", str(models_dir), "--max-loaded-models", "1", "--no-store"),
        *("--stream-keepalive-s", "0.02"),
        cache_dir=tmp_path_factory.mktemp("cache"),
        environment=ENVIRONMENT,
    ) as server:
        yield server


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.root, timeout=None) as http:
        yield http


def make_body(model: str, question: str = "12+5?", **fields: object) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}]
    return {"model": model, "messages": messages, "temperature": 0, **fields}


def ask(http: httpx.Client, model: str, question: str = "12+5?") -> str:
    response = http.post("/v1/chat/completions", json=make_body(model, question))
    assert response.status_code == 200, response.text
    assert response.json()["model"] == model
    return str(response.json()["choices"][0]["message"]["content"])


def states(http: httpx.Client) -> dict[str, str]:
    return {model["id"]: model["state"] for model in http.get("/v1/models").json()["data"]}


def wait_for(http: httpx.Client, model: str, state: str) -> None:
    while states(http)[model] != state:
        time.sleep(0.02)


def unload(http: httpx.Client, model: str) -> None:
    http.post("/v1/models/unload", json={"name": model}, headers=ADMIN).raise_for_status()


def test_a_request_loads_its_model_and_unloads_another(
    server: RunningServer, http: httpx.Client
) -> None:
    assert http.get("/health").status_code == 200
    assert list(states(http)) == ["a", "b", "broken", "org/c"]
    assert ask(http, "a") == "12 + 5 = 17"
    assert states(http)["a"] == "idle"
    assert ask(http, "org/c") == "12 + 5 = 17"
    assert list(states(http).items()) == [
        ("a", "on_disk"),
        ("b", "on_disk"),
        ("broken", "on_disk"),
        ("org/c", "idle"),
    ]
    assert len(server.engine_processes()) == 1
    metrics = http.get("/metrics").text
    assert 'ouzel_model_evictions_total{model_name="a"} 1' in metrics
    assert 'ouzel_model_loaded{model_name="org/c"} 1' in metrics
    assert (
        'ouzel_request_success_total{engine="0",finished_reason="stop",model_name="a"}' in metrics
    )


def test_the_list_tells_state_size_and_context(http: httpx.Client) -> None:
    ask(http, "b")
    described = http.get("/v1/models/b").json()
    assert described["max_model_len"] == 4096
    assert described["disk_bytes"] > 10**6
    assert described["memory_bytes"] > described["disk_bytes"]
    away = http.get("/v1/models/a").json()
    assert away["state"] == "on_disk"
    assert away["max_model_len"] == 4096
    assert "chat" in described["capabilities"]


def test_a_stream_that_waits_for_its_model_has_comments_and_one_head(http: httpx.Client) -> None:
    unload(http, "a")
    body = make_body("a", stream=True)
    with http.stream("POST", "/v1/chat/completions", json=body) as stream:
        lines = [line for line in stream.iter_lines() if line]
    assert lines[0] == ": keep-alive"
    data = [line for line in lines if line.startswith("data: ")]
    assert data[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in data[:-1]]
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
    assert text == "12 + 5 = 17"


def test_an_error_of_a_stream_that_has_waited_is_a_frame(http: httpx.Client) -> None:
    ask(http, "b")
    with http.stream("POST", "/v1/chat/completions", json=make_body("a", stream=True, n=0)) as sent:
        lines = [line for line in sent.iter_lines() if line.startswith("data: ")]
    assert len(lines) == 1
    assert json.loads(lines[0].removeprefix("data: "))["error"]["param"] == "n"


def test_anthropics_streams_wait_too(http: httpx.Client) -> None:
    unload(http, "a")
    body = make_body("a", stream=True, max_tokens=20)
    del body["temperature"]
    with http.stream("POST", "/v1/messages", json=body) as stream:
        lines = [line for line in stream.iter_lines() if line]
    assert lines[0] == "event: ping"
    assert "event: message_stop" in lines


def test_a_model_that_cannot_be_loaded_says_why_and_harms_no_other(http: httpx.Client) -> None:
    response = http.post("/v1/chat/completions", json=make_body("broken"))
    assert response.status_code == 503
    assert "config.json requires" in response.json()["error"]["message"]
    assert int(response.headers["retry-after"]) >= 1
    described = http.get("/v1/models/broken").json()
    assert described["state"] == "failed"
    assert "config.json requires" in described["failure"]
    assert ask(http, "a") == "12 + 5 = 17"


def test_directories_come_and_go_while_the_server_runs(
    http: httpx.Client, models_dir: Path
) -> None:
    copy_demo(models_dir / "new")
    assert ask(http, "new") == "12 + 5 = 17"
    assert ask(http, "a") == "12 + 5 = 17"
    shutil.rmtree(models_dir / "new")
    response = http.post("/v1/chat/completions", json=make_body("new"))
    assert response.status_code == 404
    assert "are gone" in response.json()["error"]["message"]
    assert states(http)["new"] == "absent"
    assert ask(http, "b") == "12 + 5 = 17"
    copy_demo(models_dir / "new")
    assert ask(http, "new") == "12 + 5 = 17"


def test_ollamas_keep_alive_is_honoured(http: httpx.Client) -> None:
    ask(http, "a")
    http.post("/api/generate", json={"model": "a", "keep_alive": -1}).raise_for_status()
    [running] = http.get("/api/ps").json()["models"]
    assert (running["name"], running["expires_at"][:4]) == ("a:latest", "2300")
    http.post("/api/generate", json={"model": "a", "keep_alive": "10m"}).raise_for_status()
    [running] = http.get("/api/ps").json()["models"]
    assert running["expires_at"] < "2300"
    answer = http.post("/api/chat", json={"model": "a", "keep_alive": 0, "stream": False}).json()
    assert answer["done_reason"] == "unload"
    wait_for(http, "a", "on_disk")
    assert http.get("/api/ps").json()["models"] == []
    # longer than any clock tells
    http.post("/api/generate", json={"model": "a", "keep_alive": 1e300}).raise_for_status()
    assert http.get("/api/ps").json()["models"][0]["expires_at"][:4] == "2300"
    named = {"model": "hf.co/org/c:latest", "keep_alive": 0}
    assert http.post("/api/generate", json=named).json()["done_reason"] == "unload"
    # a model that is not in memory is not loaded to be unloaded
    answer = http.post("/api/generate", json={"model": "b", "keep_alive": "0s"}).json()
    assert (answer["done_reason"], states(http)["b"]) == ("unload", "on_disk")
    assert len(http.get("/api/tags").json()["models"]) >= 4
    shown = http.post("/api/show", json={"model": "b"}).json()
    assert shown["model_info"]["qwen3.context_length"] == 4096
    assert states(http)["b"] == "on_disk"


def test_requests_without_a_model_hold_the_model_that_answers(http: httpx.Client) -> None:
    body = make_body("")
    del body["model"]
    with ThreadPoolExecutor(6) as threads:
        named = threads.submit(ask, http, "org/c")
        nameless = [threads.submit(http.post, "/v1/chat/completions", json=body) for _ in range(5)]
        assert named.result() == "12 + 5 = 17"
        for sent in nameless:
            content = sent.result().json()["choices"][0]["message"]["content"]
            assert content == "12 + 5 = 17"


def test_an_operator_loads_and_unloads(http: httpx.Client) -> None:
    loaded = http.post("/v1/models/load", json={"name": "b"}, headers=ADMIN)
    assert (loaded.status_code, loaded.json()["id"]) == (200, "b")
    unload(http, "b")
    assert states(http)["b"] == "on_disk"
    entry = {"name": "mine", "model": str(MODEL_DIRECTORY), "max_model_len": 512}
    loaded = http.post("/v1/models/load", json=entry, headers=ADMIN)
    assert loaded.json()["max_model_len"] == 512
    assert ask(http, "b") == ask(http, "mine") == "12 + 5 = 17"
    wrong = http.post("/v1/models/load", json={"name": "x", "model": "/nowhere"}, headers=ADMIN)
    assert wrong.status_code == 400
    assert "x" not in states(http)


def test_many_requests_for_models_that_do_not_fit_together_are_all_answered(
    server: RunningServer, http: httpx.Client
) -> None:
    numbers = random.Random(0)
    answers = {question: ask(http, "a", question) for question in QUESTIONS}
    asked = [
        (numbers.choice(["a", "b", "org/c"]), question, answer, numbers.random() < 0.2)
        for question, answer in list(answers.items()) * 6
    ]

    async def send_all() -> list[bool]:
        async with httpx.AsyncClient(base_url=server.root, timeout=None) as client:
            return await asyncio.gather(*(send(client, *each) for each in asked))

    async def send(
        client: httpx.AsyncClient, model: str, question: str, answer: str, leaves: bool
    ) -> bool:
        body = make_body(model, question, stream=leaves)
        if leaves:
            async with client.stream("POST", "/v1/chat/completions", json=body) as stream:
                async for _ in stream.aiter_lines():
                    return True
        response = await client.post("/v1/chat/completions", json=body)
        return bool(response.json()["choices"][0]["message"]["content"] == answer)

    assert all(asyncio.run(send_all()))
    while 'ouzel_model_open_requests{model_name="a"} 0' not in (
        metrics := http.get("/metrics").text
    ) or any(f'{name}"}} 1' in metrics for name in ("open_requests", "waiting_for_models")):
        time.sleep(0.02)
    assert "ouzel_requests_waiting_for_models 0" in metrics


def test_an_idle_model_is_unloaded_and_the_next_request_loads_it_again(tmp_path: Path) -> None:
    with (
        serving("--idle-unload-s", "0.1", "--no-store", cache_dir=tmp_path) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        wait_for(http, "ouzel-demo", "on_disk")
        assert server.engine_processes() == []
        assert ask(http, "ouzel-demo") == "12 + 5 = 17"
        assert http.post("/v1/chat/completions", json=make_body("")).status_code == 200


def test_a_server_without_the_options_shows_no_states(tmp_path: Path) -> None:
    with (
        serving("--no-store", cache_dir=tmp_path) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        [model] = http.get("/v1/models").json()["data"]
        assert "state" not in model
        assert "ouzel_model_" not in http.get("/metrics").text
        answer = http.post("/api/generate", json={"model": "ouzel-demo", "keep_alive": 0}).json()
        assert answer["done_reason"] == "unload"
        assert ask(http, "ouzel-demo") == "12 + 5 = 17"


def test_a_killed_engine_harms_no_other_model(server: RunningServer, http: httpx.Client) -> None:
    ask(http, "a")
    [engine] = server.engine_processes()
    engine.kill()
    while http.get("/v1/models/a").json()["state"] != "idle" or not server.engine_processes():
        time.sleep(0.02)
    assert ask(http, "b") == "12 + 5 = 17"
    assert ask(http, "a") == "12 + 5 = 17"


def test_a_file_that_was_damaged_while_its_model_was_away(
    http: httpx.Client, models_dir: Path
) -> None:
    damaged = copy_demo(models_dir / "damaged")
    assert ask(http, "damaged") == "12 + 5 = 17"
    unload(http, "damaged")
    (damaged / "tokenizer.json").unlink()
    (damaged / "tokenizer.json").write_text("{")
    response = http.post("/v1/chat/completions", json=make_body("damaged"))
    assert response.status_code == 503
    assert "tokenizer.json" in response.json()["error"]["message"]
    assert http.get("/v1/models/damaged").json()["state"] == "failed"
    assert ask(http, "a") == "12 + 5 = 17"
    (damaged / "tokenizer.json").unlink()
    (damaged / "tokenizer.json").symlink_to(MODEL_DIRECTORY / "tokenizer.json")
    while http.post("/v1/chat/completions", json=make_body("damaged")).status_code == 503:
        time.sleep(0.1)
    assert ask(http, "damaged") == "12 + 5 = 17"


def test_cached_prompts_of_an_unloaded_model_are_on_the_disk(
    models_dir: Path, tmp_path: Path
) -> None:
    long = "1+1? " * 60
    with (
        serving(
            *("--models-dir", str(models_dir), "--no-store"),
            *("--prefix-cache-dir", str(tmp_path / "prompts")),
            cache_dir=tmp_path,
            environment=ENVIRONMENT,
        ) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        ask(http, "a", long)
        unload(http, "a")
        answer = http.post("/v1/chat/completions", json=make_body("a", long)).json()
        assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


def test_a_websocket_loads_its_model(server: RunningServer, http: httpx.Client) -> None:
    unload(http, "b")
    with connect(f"{server.url.replace('http', 'ws', 1)}/responses") as socket:
        create = {"type": "response.create", "model": "b", "input": "12+5?", "temperature": 0}
        socket.send(json.dumps(create))
        while (event := json.loads(socket.recv()))["type"] != "response.completed":
            assert event["type"] != "error", event
    [message] = event["response"]["output"]
    assert message["content"][0]["text"] == "12 + 5 = 17"


def test_a_response_in_the_background_keeps_its_model(tmp_path: Path, models_dir: Path) -> None:
    with (
        serving(
            *("--models-dir", str(models_dir), "--max-loaded-models", "1"), cache_dir=tmp_path
        ) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        body = {"model": "a", "input": "12+5?", "temperature": 0, "background": True}
        response = http.post("/v1/responses", json=body).json()
        assert ask(http, "b") == "12 + 5 = 17"
        made = http.post("/v1/conversations", json={}).json()
        before = states(http)
        assert http.get(f"/v1/conversations/{made['id']}").json()["id"] == made["id"]
        assert http.get(f"/v1/conversations/{made['id']}/items").json()["data"] == []
        assert http.delete(f"/v1/conversations/{made['id']}").json()["deleted"]
        assert states(http) == before
        done = http.get(f"/v1/responses/{response['id']}").json()
        assert done["status"] == "completed"
        assert done["output"][0]["content"][0]["text"] == "12 + 5 = 17"
