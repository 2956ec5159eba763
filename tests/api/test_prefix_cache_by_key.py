"""The prefix cache serves an API key only from prompts of the same key, at all endpoints."""

from collections.abc import Iterator
from functools import partial

import httpx
import pytest

from ouzel.config import ServerConfig
from ouzel.parsers.plain import PlainParser
from tests.api.requests import Json, chat, sum_metric, wait_until
from tests.api.responses.sockets import connect_socket
from tests.api.server_setup import build_output_format
from tests.api.serving import RunningServer, running_server

ONE, OTHER = "sk-one", "sk-other"
CONFIG = ServerConfig(api_key=(ONE, OTHER))
LIMIT: Json = {"model": "parrot", "max_tokens": 2}


babbling_server = partial(
    running_server,
    engine_factory="create_random_engine",
    config=CONFIG,
    # the default parser fails on purpose at "#", which random output contains
    output_format=build_output_format(PlainParser),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/responses.sqlite3"
    with babbling_server(store_url=url) as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def num_cached(http: httpx.Client, key: str) -> float:
    """Returns the number of tokens found in the cache since the server's start."""
    exposition = http.get("/metrics", headers=bearer(key)).text
    return sum_metric(exposition, "ouzel_prompt_tokens_cached_total")


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def count_cached(http: httpx.Client, path: str, body: Json, key: str) -> float:
    before = num_cached(http, key)
    answer = http.post(path, json=body, headers=bearer(key))
    assert answer.status_code == 200, answer.text
    answered: Json = answer.json()
    if body.get("background"):
        url = f"/v1/responses/{answered['id']}"
        ends = ("completed", "incomplete", "failed")
        wait_until(lambda: http.get(url, headers=bearer(key)).json()["status"] in ends)
    return num_cached(http, key) - before


PROMPT = "the same words for everybody"
WAYS: dict[str, tuple[str, Json]] = {
    "chat": ("/v1/chat/completions", {**chat(PROMPT), "max_tokens": 2}),
    "chat of OVMS": ("/v3/chat/completions", {**chat(f"{PROMPT}, of OVMS"), "max_tokens": 2}),
    "salted chat": (
        "/v1/chat/completions",
        {**chat(PROMPT), "max_tokens": 2, "cache_salt": "salt"},
    ),
    "completions": ("/v1/completions", {**LIMIT, "prompt": PROMPT}),
    "several prompts": (
        "/v1/completions",
        {**LIMIT, "prompt": [f"{PROMPT}, first", f"{PROMPT}, second"]},
    ),
    "LMI": ("/invocations", {"inputs": f"{PROMPT}, of LMI", "parameters": {"max_new_tokens": 2}}),
    "responses": (
        "/v1/responses",
        {"model": "parrot", "input": f"{PROMPT}, respond", "max_output_tokens": 16},
    ),
    "background": (
        "/v1/responses",
        {
            "model": "parrot",
            "input": f"{PROMPT}, later",
            "max_output_tokens": 16,
            "background": True,
        },
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_another_key_does_not_find_the_prompt(
    server: RunningServer, http: httpx.Client, way: str
) -> None:
    path, body = WAYS[way]
    first = count_cached(http, path, body, ONE)
    of_other = count_cached(http, path, body, OTHER)
    again = count_cached(http, path, body, ONE)
    assert again > 0
    assert of_other == first, (
        "both began with what they have in common with their own earlier prompts"
    )


def test_a_salt_that_spells_another_keys_finds_nothing(http: httpx.Client) -> None:
    count_cached(http, "/v1/completions", {**LIMIT, "prompt": "spelled", "cache_salt": "own"}, ONE)
    for salt in ("own", f"{ONE}:own", ":own"):
        body: Json = {**LIMIT, "prompt": "spelled", "cache_salt": salt}
        assert count_cached(http, "/v1/completions", body, OTHER) == 0


def test_a_web_socket_finds_its_own_keys_prompts(server: RunningServer, http: httpx.Client) -> None:
    def cached_tokens(key: str) -> int:
        with connect_socket(server.url, additional_headers=bearer(key)) as socket:
            response = socket.response("over a web socket", max_output_tokens=16, store=False)
        assert response.usage is not None
        return response.usage.input_tokens_details.cached_tokens

    first, of_other, again = cached_tokens(ONE), cached_tokens(OTHER), cached_tokens(ONE)
    assert of_other == first < again


def test_keys_share_the_cache_where_they_are_told_to() -> None:
    with (
        babbling_server(shares_prefix_cache=True) as server,
        server.client() as http,
    ):
        assert count_cached(http, *WAYS["chat"], ONE) == 0
        assert count_cached(http, *WAYS["chat"], OTHER) != 0
