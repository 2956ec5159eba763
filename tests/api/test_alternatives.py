"""A token is shown with the most likely alternatives, requested ids or the whole vocabulary."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import LimitsConfig
from tests.api.requests import chat, read_error
from tests.api.serving import running_server

VOCAB_SIZE = 260


@pytest.fixture(scope="module")
def limited() -> Iterator[httpx.Client]:
    with running_server(engine_factory="create_random_engine") as server, server.client() as http:
        yield http


@pytest.fixture(scope="module")
def unlimited() -> Iterator[httpx.Client]:
    limits = LimitsConfig(max_logprobs=-1)
    with (
        running_server(engine_factory="create_random_engine", limits=limits) as server,
        server.client() as http,
    ):
        yield http


def completion(**fields: object) -> dict[str, object]:
    return {"model": "parrot", "prompt": "abc", "max_tokens": 2, **fields}


def test_a_chat_shows_the_tokens_asked_for_beside_the_most_likely(limited: httpx.Client) -> None:
    body = chat(
        "hello", logprobs=True, max_tokens=3, temperature=0, return_tokens_as_token_ids=True
    )
    body |= {"logprob_token_ids": [101, 3, 101], "top_logprobs": 2}
    content = limited.post("/v1/chat/completions", json=body).json()["choices"][0]["logprobs"][
        "content"
    ]
    whole = body | {"top_logprobs": 20}
    most_likely = limited.post("/v1/chat/completions", json=whole).json()["choices"][0]["logprobs"][
        "content"
    ]
    assert len(content) == 3
    for position, wider in zip(content, most_likely, strict=True):
        shown = position["top_logprobs"]
        assert shown[:2] == wider["top_logprobs"][:2]
        assert [each["token"] for each in shown[2:]] == ["token_id:101", "token_id:3"]
        assert (
            position["logprob"] == shown[0]["logprob"] > max(each["logprob"] for each in shown[2:])
        )


def test_a_completion_shows_them_by_text(limited: httpx.Client) -> None:
    body = completion(logprobs=0, logprob_token_ids=list(b"xy"))
    logprobs = limited.post("/v1/completions", json=body).json()["choices"][0]["logprobs"]
    for token, top in zip(logprobs["tokens"], logprobs["top_logprobs"], strict=True):
        assert top.keys() == {"x", "y", token}


@pytest.mark.parametrize(
    ("path", "body", "field", "message"),
    [
        (
            "chat/completions",
            chat("a", logprob_token_ids=[1]),
            "logprob_token_ids",
            "needs logprobs to be true",
        ),
        (
            "completions",
            completion(logprob_token_ids=[1]),
            "logprob_token_ids",
            "needs logprobs, given [1]",
        ),
        (
            "completions",
            completion(logprobs=1, logprob_token_ids=[1, VOCAB_SIZE]),
            "logprob_token_ids[1]",
            "must be <= 259, given 260",
        ),
        (
            "completions",
            completion(logprobs=1, logprob_token_ids=[1] * 129),
            "logprob_token_ids",
            "128",
        ),
        (
            "chat/completions",
            chat("a", logprobs=True, top_logprobs=-1),
            "top_logprobs",
            "must be from 0 to 20",
        ),
        (
            "completions",
            completion(logprobs=-1),
            "logprobs",
            "given -1, the whole vocabulary of 260",
        ),
        ("completions", completion(prompt_logprobs=-1), "prompt_logprobs", "see --max-logprobs"),
        ("completions", completion(prompt_logprobs=-2), "prompt_logprobs", ">= -1"),
    ],
)
def test_unavailable_alternatives_are_refused(
    limited: httpx.Client, path: str, body: dict[str, object], field: str, message: str
) -> None:
    response = limited.post(f"/v1/{path}", json=body)
    assert response.status_code == 400, response.text
    error = read_error(response)
    assert error["param"] == field
    assert message in error["message"]


def test_minus_one_is_the_whole_vocabulary(unlimited: httpx.Client) -> None:
    body = chat("hello", max_tokens=2, logprobs=True, top_logprobs=-1, prompt_logprobs=-1)
    answer = unlimited.post("/v1/chat/completions", json=body).json()
    for position in answer["choices"][0]["logprobs"]["content"]:
        logprobs = [each["logprob"] for each in position["top_logprobs"]]
        assert len(logprobs) == VOCAB_SIZE
        assert logprobs == sorted(logprobs, reverse=True)
    assert all(len(position) == VOCAB_SIZE for position in answer["prompt_logprobs"][1:])

    text_body = completion(
        echo=True, logprobs=-1, prompt_logprobs=0, return_tokens_as_token_ids=True
    )
    choice = unlimited.post("/v1/completions", json=text_body).json()["choices"][0]
    assert [len(top or ()) for top in choice["logprobs"]["top_logprobs"]] == [0, *[VOCAB_SIZE] * 4]
    assert all(len(position) == 1 for position in choice["prompt_logprobs"][1:])


def test_more_than_fit_into_the_memory_are_refused() -> None:
    setup = {"vocab_size": 100_000, "max_model_len": 4096}
    with (
        running_server(options=setup, limits=LimitsConfig(max_logprobs=-1)) as server,
        server.client() as http,
    ):
        too_long = http.post("/v1/completions", json=completion(logprobs=-1, max_tokens=11))
        too_many = http.post("/v1/completions", json=completion(logprobs=-1, max_tokens=2, n=6))
        prompts = completion(prompt=["abcd", "abc", "ab"], prompt_logprobs=-1)
        usual = http.post(
            "/v1/completions", json=completion(logprobs=1024, max_tokens=4000, stop="b")
        )
        scored = http.post("/v1/completions", json=prompts)
    assert (
        read_error(too_long)["message"] == "logprobs must be <= 95325 with 11 tokens, given 100000"
    )
    assert (
        read_error(too_many)["message"] == "logprobs must be <= 87381 with 12 tokens, given 100000"
    )
    assert (
        read_error(scored)["message"]
        == "prompt_logprobs must be <= 87381 with 12 tokens, given 100000"
    )
    assert usual.status_code == 200
