"""A request whose grammar is not compiled in time gets a 429, and can be sent again."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.config import Profile, ServerConfig
from tests.api.requests import Json, chat, read_error
from tests.api.server_setup import MODEL
from tests.api.serving import running_server

FORM: Json = {"response_format": {"type": "json_object"}}
COMPLETION: Json = {"model": "parrot", "prompt": "a", "max_tokens": 2}
MESSAGE = "too many other grammars are being compiled; try again later"


@pytest.fixture(scope="module")
def overloaded_http() -> Iterator[httpx.Client]:
    with (
        running_server(engine_factory="create_grammar_timeout_engine") as server,
        server.client() as http,
    ):
        yield http


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", chat("Hi", max_tokens=2, **FORM)),
        ("/v1/chat/completions", chat("Hi", max_tokens=2, n=3, **FORM)),
        ("/v1/completions", COMPLETION | FORM),
        ("/v1/completions", COMPLETION | FORM | {"prompt": ["a", "b", "c"]}),
        (
            "/v1/responses",
            {"model": "parrot", "input": "Hi", "text": {"format": {"type": "json_object"}}},
        ),
    ],
    ids=["chat", "three choices", "completion", "three prompts", "response"],
)
def test_a_grammar_whose_turn_does_not_come_is_put_off(
    overloaded_http: httpx.Client, path: str, body: Json, stream: bool
) -> None:
    response = overloaded_http.post(path, json=body | {"stream": stream})

    assert response.status_code == 429
    assert response.headers["retry-after"] == "5"
    assert read_error(response) == {
        "message": MESSAGE,
        "type": "rate_limit_error",
        "param": None,
        "code": "overloaded",
    }


@pytest.mark.parametrize(
    ("profile", "path", "status", "answer"),
    [
        ("ovms", "/v3/chat/completions", 429, {"error": MESSAGE}),
        (
            "lmi",
            "/invocations",
            503,
            {"code": 503, "type": "WlmCapacityException", "message": MESSAGE},
        ),
    ],
)
def test_each_profile_says_so_in_its_words(
    profile: Profile, path: str, status: int, answer: Json
) -> None:
    config = ServerConfig(profile=profile)
    with (
        running_server(config=config, engine_factory="create_grammar_timeout_engine") as server,
        server.client() as http,
    ):
        for stream in (False, True):
            response = http.post(path, json=chat("Hi", stream=stream, **FORM))
            assert (response.status_code, response.headers["retry-after"]) == (status, "5")
            assert response.json() == answer


def test_a_refusal_is_counted_and_other_requests_are_served(overloaded_http: httpx.Client) -> None:
    before = num_overloaded(overloaded_http)
    assert (
        overloaded_http.post("/v1/chat/completions", json=chat("Hi", n=3, **FORM)).status_code
        == 429
    )
    response = overloaded_http.post("/v1/completions", json=COMPLETION)

    assert response.json()["usage"]["completion_tokens"] == 2
    assert num_overloaded(overloaded_http) == before + 3


def num_overloaded(http: httpx.Client) -> float:
    labels = f'engine="0",finished_reason="overloaded",model_name="{MODEL}"'
    name = f"ouzel_request_success_total{{{labels}}} "
    counts = [
        line.removeprefix(name)
        for line in http.get("/metrics").text.splitlines()
        if line.startswith(name)
    ]
    return sum(map(float, counts))
