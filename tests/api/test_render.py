"""vLLM's `/render` shows the prompt and the parameters of a body without making an answer."""

from typing import Any  # an answer's JSON

import httpx
import pytest

from tests.api.byte_tokens import END, START
from tests.api.requests import chat, read_error, sum_metric
from tests.api.server_setup import ALIAS, MODEL

CHAT_TEXT = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
CHAT_IDS = [START, *b"user\nHi", END, *b"\n", START, *b"assistant\n"]


def render(http: httpx.Client, path: str, body: dict[str, object]) -> Any:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(
    "path",
    ["/v1/chat/completions/render", "/v3/chat/completions/render", "/chat/completions/render/"],
)
def test_a_chat_is_one_prompt(http: httpx.Client, path: str) -> None:
    body = chat(
        "Hi",
        max_tokens=7,
        temperature=0.5,
        stop=["x"],
        n=2,
        seed=3,
        stream=True,
        priority=1,
        cache_salt="s",
    )
    answer = render(http, path, body)
    assert (answer["prompt"], answer["token_ids"], answer["model"]) == (CHAT_TEXT, CHAT_IDS, MODEL)
    assert (answer["stream"], answer["priority"], answer["cache_salt"]) == (True, 1, "s")
    asked = {"max_tokens": 7, "temperature": 0.5, "stop": ["x"], "n": 2, "seed": 3}
    assert {name: answer["sampling_params"][name] for name in asked} == asked


def test_a_completion_is_a_list_of_prompts(http: httpx.Client) -> None:
    body: dict[str, object] = {"model": ALIAS, "prompt": ["ab", "cd"]}
    answer = render(http, "/v1/completions/render", body)
    assert [(each["prompt"], each["token_ids"]) for each in answer] == [
        ("ab", [97, 98]),
        ("cd", [99, 100]),
    ]
    assert [each["sampling_params"]["max_tokens"] for each in answer] == [16, 16]


def test_nothing_is_generated(http: httpx.Client) -> None:
    before = sum_metric(http.get("/metrics").text, "ouzel_generation_tokens_total")
    render(http, "/v1/chat/completions/render", chat("Hi"))
    # a thread reads a body of this length
    render(http, "/v1/chat/completions/render", chat("Hi " * 1000))
    assert sum_metric(http.get("/metrics").text, "ouzel_generation_tokens_total") == before


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (chat("Hi", temperature=9), "temperature"),
        ({"model": ALIAS, "messages": []}, "messages"),
        (chat("x" * 5000), "messages"),
        (chat("Hi", model="owl"), "model"),
    ],
)
def test_rendering_refuses_with_the_same_errors_as_a_chat(
    http: httpx.Client, body: dict[str, object], param: str
) -> None:
    refusal = http.post("/v1/chat/completions/render", json=body)
    assert read_error(refusal)["param"] == param
    assert refusal.json() == http.post("/v1/chat/completions", json=body).json()
