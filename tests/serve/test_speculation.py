"""Guesses of the demo model change no answer, whether they pay on this machine or not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any  # JSON

import httpx
import pytest

from tests.serve.running import serving

FIELDS = {"temperature": 0, "max_tokens": 60, "ignore_eos": True}


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def http(cache_dir: Path) -> Iterator[httpx.Client]:
    with (
        serving("--precision", "f32", "--kv-cache-dtype", "f32", cache_dir=cache_dir) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        yield http


def answered(http: httpx.Client, **fields: object) -> Any:
    body = {"messages": [{"role": "user", "content": "What is 17 plus 25?"}], **FIELDS, **fields}
    response = http.post("/v1/chat/completions", json=body)
    assert response.status_code == 200, response.text
    return response.json()


def text(answer: Any) -> str:
    content: str = answer["choices"][0]["message"]["content"]
    return content


def counted(answer: Any) -> tuple[int, int]:
    details = answer["usage"]["completion_tokens_details"]
    return details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]


def num_proposed_ever(http: httpx.Client) -> int:
    name = "vllm:spec_decode_num_draft_tokens_total"
    [line] = [
        line for line in http.get("/metrics").text.splitlines() if line.startswith(name + "{")
    ]
    return int(float(line.rpartition(" ")[2]))


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.0, "seed": 3}])
def test_a_predicted_answer_is_the_same_answer(
    http: httpx.Client, sampling: dict[str, object]
) -> None:
    plain = answered(http, num_assistant_tokens=0, **sampling)
    before = num_proposed_ever(http)
    foretold, misled = (
        answered(http, prediction={"type": "content", "content": content}, **sampling)
        for content in (text(plain), "42 is what you get. " * 20)
    )

    assert text(foretold) == text(misled) == text(plain)
    assert counted(plain) == (0, 0)
    assert all(
        0 <= counted(answer)[0] < answer["usage"]["completion_tokens"]
        for answer in (foretold, misled)
    )
    assert sum(counted(foretold)) + sum(counted(misled)) == num_proposed_ever(http) - before


def test_a_server_without_speculation_refuses_its_fields(cache_dir: Path) -> None:
    with (
        serving("--no-prompt-lookup", cache_dir=cache_dir) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        assert counted(
            answered(http, prediction={"type": "content", "content": "17 plus 25 is 42."})
        ) == (0, 0)
        refused = http.post(
            "/v1/chat/completions", json={"messages": [], "num_assistant_tokens": 5}
        )
        assert refused.status_code == 400
        assert "--prompt-lookup" in refused.json()["error"]["message"]
        assert num_proposed_ever(http) == 0
