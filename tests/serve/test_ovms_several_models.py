"""`ouzel serve` with a config.json of OpenVINO Model Server, as it changes."""

import json
import signal
import time
from pathlib import Path

import httpx
import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.options.ovms_graphs import write_graph
from tests.serve.running import serving

RELOAD = "/v1/config/reload"


def names(http: httpx.Client) -> list[str]:
    return [model["id"] for model in http.get("/v3/models").json()["data"]]


def wait_for(http: httpx.Client, *wanted: str) -> None:
    while names(http) != [*wanted]:
        time.sleep(0.02)


def answer(http: httpx.Client, model: str) -> tuple[str, int]:
    body = {"model": model, "messages": [{"role": "user", "content": "12+5?"}], "temperature": 0}
    response = http.post("/v3/chat/completions", json=body).json()
    return response["choices"][0]["message"]["content"], response["usage"]["completion_tokens"]


@pytest.mark.release("models of an OVMS file that come and go")
def test_models_of_a_config_come_and_go_by_the_file_by_request_and_by_signal(
    tmp_path: Path,
) -> None:
    models, config = tmp_path / "models", tmp_path / "models" / "config.json"
    for name, options in (
        ("short", "max_tokens_limit: 2"),
        ("long", "max_num_seqs: 4"),
        ("wrong", "no_field: 1"),
    ):
        (models / name).mkdir(parents=True)
        (models / name / "graph.pbtxt").write_text(
            write_graph(f'models_path: "{MODEL_DIRECTORY}" {options}')
        )
    (models / "resnet" / "1").mkdir(parents=True)

    long_graph = (models / "long" / "graph.pbtxt").read_text()

    def list_models(*listed: str) -> None:
        entries = [{"config": {"name": name, "base_path": name}} for name in (*listed, "resnet")]
        config.write_text(json.dumps({"model_config_list": entries}))

    list_models("short", "long")
    flags = ("--profile", "ovms", "--rest_port", "0", "--config_path", str(config), "--no-store")
    with (
        serving(*flags, "--file_system_poll_wait_seconds", "1", cache_dir=tmp_path) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        assert names(http) == ["short", "long"]
        assert answer(http, "long")[0] == "12 + 5 = 17"
        assert answer(http, "short")[1] == 2

        list_models("long", "wrong")
        wait_for(http, "long")  # the file is looked at

        (models / "long" / "graph.pbtxt").write_text("node {")
        kept = http.post(RELOAD)
        (models / "long" / "graph.pbtxt").write_text(long_graph)
        config.write_text("{")
        broken = http.post(RELOAD)
        config.unlink()
        gone = http.post(RELOAD)
        assert names(http) == ["long"]

        list_models("long", "short")
        state = http.post(RELOAD)
        list_models("short")
        server.process.send_signal(signal.SIGHUP)
        wait_for(http, "short")

    assert (kept.status_code, list(kept.json())) == (200, ["long"])
    assert (broken.status_code, gone.status_code) == (500, 500)
    assert broken.json() == {
        "error": "Reloading config file failed. Check server logs for more info."
    }
    assert gone.json() == {"error": "Config file not found or cannot open."}
    assert (state.status_code, list(state.json())) == (200, ["long", "short"])
    assert state.json()["short"]["model_version_status"][0]["state"] == "AVAILABLE"
