"""Starts `ouzel serve` with vLLM as its engine, as a user does.

Tokenizer and chat template come from the demo model.
"""

import os
from pathlib import Path

import httpx
import pytest

from ouzel.demo import MODEL_DIRECTORY
from tests.api.requests import join_content, read_events, sum_metric
from tests.backends.vllm.interpreter import make_interpreter
from tests.backends.vllm.vllm_server import vllm_server
from tests.serve.answers import ask_all
from tests.serve.running import RunningServer, failure, send, serving

BODY = {
    "messages": [{"role": "user", "content": "Good evening."}],
    "max_tokens": 12,
    "temperature": 0,
}


def check_answers(server: RunningServer) -> None:
    whole = httpx.post(f"{server.url}/chat/completions", json=BODY, timeout=None).json()
    events = read_events(
        httpx.post(f"{server.url}/chat/completions", json=BODY | {"stream": True}, timeout=None)
    )
    stored = httpx.post(
        f"{server.url}/responses", json={"input": "abc", "max_output_tokens": 3}, timeout=None
    ).json()
    refused = httpx.post(
        f"{server.url}/chat/completions", json=BODY | {"typical_p": 0.5}, timeout=None
    )

    assert send(server.curl)["usage"]["completion_tokens"] > 0
    assert 0 < whole["usage"]["completion_tokens"] <= 12
    assert whole["choices"][0]["message"]["content"] == join_content(events[:-1])
    assert httpx.get(f"{server.url}/responses/{stored['id']}").json()["id"] == stored["id"]
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "typical_p")
    answers = ask_all(
        f"{server.url}/", [BODY | {"stream": place % 2 == 0} for place in range(64)], concurrency=64
    )
    assert {answer.whole["choices"][0]["message"]["content"] for answer in answers} == {
        join_content(events[:-1])
    }


@pytest.mark.release("engines elsewhere (vLLM)")
def test_vllm_runs_in_another_interpreter(tmp_path: Path) -> None:
    python = make_interpreter(tmp_path / "vllm")
    options = (
        *("--engine", "vllm", "--engine-python", python),
        *("--max-num-seqs", "32", "--tensor-parallel-size", "2"),
    )
    with serving(*options, cache_dir=tmp_path, is_openvino=False) as server:
        check_answers(server)
        assert server.engine_process().cmdline()[0] == python
        assert httpx.get(f"{server.root}/health").status_code == 200


def test_vllm_runs_in_another_server(tmp_path: Path) -> None:
    with vllm_server(api_key="secret") as vllm:
        options = ("--engine-url", vllm.url, str(MODEL_DIRECTORY))
        environment = os.environ | {"OUZEL_ENGINE_API_KEY": "secret"}
        with serving(
            *options, cache_dir=tmp_path, is_openvino=False, environment=environment
        ) as server:
            check_answers(server)
            name = "vllm:num_preemptions_total"
            while sum_metric(httpx.get(f"{server.root}/metrics").text, name) == 0:
                pass  # Ouzel reads vLLM's metrics every few seconds


@pytest.mark.release("engines elsewhere (vLLM)")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "vllm"), "--engine vllm: needs --engine-python, or --engine-url"),
        (
            ("--engine-url", "http://127.0.0.1:1", "--engine-wait-s", "0"),
            "no engine has answered for 0 s",
        ),
    ],
)
def test_a_start_without_vllm_is_refused(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert message in failure(*arguments, cache_dir=tmp_path)
