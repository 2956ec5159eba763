"""A limit beyond the context is lowered to the rest of the context, unless the server is strict."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import LimitsConfig
from tests.api.requests import chat, read_error
from tests.api.serving import running_server

CONTEXT = 64
PROMPT = "abcd"  # four tokens, which the engine repeats for ever
LEFT = CONTEXT - len(PROMPT)


@pytest.fixture(scope="module")
def small() -> Iterator[httpx.Client]:
    with running_server({"max_model_len": CONTEXT}) as server, server.client() as http:
        yield http


@pytest.fixture(scope="module")
def strict() -> Iterator[httpx.Client]:
    limits = LimitsConfig(strict_max_tokens=True)
    with running_server({"max_model_len": CONTEXT}, limits) as server, server.client() as http:
        yield http


@pytest.mark.parametrize(
    ("fields", "num_tokens"),
    [
        ({"max_tokens": 8000}, LEFT),
        ({"max_tokens": LEFT + 1}, LEFT),
        ({"max_tokens": LEFT}, LEFT),
        ({"max_completion_tokens": 8000, "max_tokens": 2}, LEFT),
        ({"max_tokens": -1}, LEFT),
        ({"max_completion_tokens": -1, "max_tokens": 2}, LEFT),
        ({"max_tokens": None}, LEFT),
        ({}, 16),
        ({"max_tokens": 2**40}, LEFT),
        # A truncated prompt leaves room for the answer. The room is an eighth of the context if
        # the limit itself would leave no room for a prompt.
        ({"truncate_prompt_tokens": -1, "prompt": "x" * 100, "max_tokens": 8000}, CONTEXT // 8),
        ({"truncate_prompt_tokens": -1, "prompt": "x" * 100, "max_tokens": 20}, 20),
        ({"truncate_prompt_tokens": -1, "prompt": "x" * 100, "max_tokens": -1}, 1),
        ({"truncate_prompt_tokens": 4, "prompt": "x" * 100, "max_tokens": 8000}, LEFT),
    ],
)
def test_a_completion_gets_the_tokens_that_its_prompt_leaves(
    small: httpx.Client, fields: dict[str, object], num_tokens: int
) -> None:
    answer = small.post(
        "/v1/completions", json={"model": "parrot", "prompt": PROMPT, **fields}
    ).json()
    assert answer["usage"]["completion_tokens"] == num_tokens
    assert answer["choices"][0]["finish_reason"] == "length"


def test_a_beam_search_gets_the_rest_of_the_cache() -> None:
    body = {
        "model": "parrot",
        "prompt": PROMPT,
        "num_beams": 4,
        "temperature": 0,
        "ignore_eos": True,
    }
    with running_server(engine_factory="create_random_engine") as server, server.client() as http:
        choice = http.post("/v1/completions", json={**body, "max_tokens": 100_000}).json()[
            "choices"
        ][0]
        assert choice["finish_reason"] == "length"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("wanted", [8000, -1, None])
def test_a_chat_may_ask_for_more_than_there_is(
    small: httpx.Client, path: str, wanted: int | None
) -> None:
    if path == "/v1/responses":
        body: dict[str, object] = {"input": "Hi", "max_output_tokens": wanted, "store": False}
    else:
        body = chat("Hi", max_completion_tokens=wanted)
    answer = small.post(path, json={"model": "parrot", **body})
    assert answer.status_code == 200, answer.text
    assert answer.json().get("max_output_tokens") in (None, 8000)


def test_an_input_that_is_cut_leaves_room_for_the_answer_alone(small: httpx.Client) -> None:
    """The room is an eighth of the context, without a limit and with a limit beyond the context."""
    turns = [
        {"role": role, "content": text}
        for role, text in (("user", "a"), ("assistant", "b"), ("user", "c"))
        for _ in "1"
    ]
    body = {"model": "parrot", "input": turns, "truncation": "auto", "store": False}
    unlimited, more = (
        small.post("/v1/responses", json={**body, **limit}).json()
        for limit in ({}, {"max_output_tokens": 99})
    )
    assert unlimited["usage"]["input_tokens"] == more["usage"]["input_tokens"]


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        (
            {"max_tokens": 61},
            "max_tokens",
            "max_tokens must be <= 60, given 61. This model's maximum context length is "
            "64 tokens. However, you requested 65 tokens (4 in the prompt, 61 in the "
            "completion). Please reduce the length of the messages or "
            "completion (context_length_exceeded).",
        ),
        (
            {"max_completion_tokens": 61, "max_tokens": 1},
            "max_completion_tokens",
            "must be <= 60, given 61",
        ),
        (
            {"max_tokens": 8000, "truncate_prompt_tokens": -1},
            "max_tokens",
            "must be <= 60, given 8000",
        ),
        ({"max_tokens": -2}, "max_tokens", "must be >= -1, given -2"),
    ],
)
def test_a_strict_server_refuses_more(
    strict: httpx.Client, fields: dict[str, object], param: str, message: str
) -> None:
    answer = strict.post("/v1/completions", json={"model": "parrot", "prompt": PROMPT, **fields})
    error = read_error(answer)
    assert (answer.status_code, error["param"]) == (400, param)
    assert message in error["message"]
    assert error["code"] == (None if "-2" in message else "context_length_exceeded")


@pytest.mark.parametrize("wanted", [-1, None, LEFT])
def test_a_strict_server_gives_the_rest_on_request(
    strict: httpx.Client, wanted: int | None
) -> None:
    body = {"model": "parrot", "prompt": PROMPT, "max_tokens": wanted}
    assert strict.post("/v1/completions", json=body).json()["usage"]["completion_tokens"] == LEFT


def test_the_rest_is_within_the_servers_own_limit() -> None:
    with running_server(max_tokens_limit=4) as server, server.client() as http:
        body = {"model": "parrot", "prompt": PROMPT}
        for wanted in (-1, None):
            answer = http.post("/v1/completions", json={**body, "max_tokens": wanted}).json()
            assert answer["usage"]["completion_tokens"] == 4
        assert http.post("/v1/completions", json={**body, "max_tokens": 5}).status_code == 400
