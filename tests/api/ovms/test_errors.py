"""An error of OVMS's profile is an object with one string, and has OVMS's status if it fits."""

import httpx
import pytest

from ouzel.config import LimitsConfig, ServerConfig
from tests.api.requests import Json, chat, read_error, read_events
from tests.api.serving import running_server

PATH = "/v3/chat/completions"
WRAPPER = (
    "Mediapipe execution failed. MP status - INVALID_ARGUMENT: CalculatorGraph::Run() failed: \n"
    'Calculator::Process() for node "LLMExecutor" failed: '
)
NOT_JSON = "The file is not valid json - "


@pytest.mark.parametrize("path", [PATH, "/v1/completions"])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "Cannot parse JSON body"),
        ("", "Cannot parse JSON body"),
        ('{"a": "\xff"}'.encode("latin-1"), "Cannot parse JSON body"),
        ('{"a":' * 100_000, "JSON body exceeds maximum nesting depth"),
        ("[]", "JSON body must be an object"),
        ("null", "JSON body must be an object"),
        ("{}", "model field is missing in JSON body"),
        ('{"model": null}', "model field is not a string"),
        ('{"model": 1}', "model field is not a string"),
        ('{"model": "parrot", "stream": "yes"}', "stream field is not a boolean"),
        ('{"model": "nobody", "stream": 1}', "stream field is not a boolean"),
    ],
)
def test_a_malformed_request_is_a_412(
    ovms: httpx.Client, path: str, body: str | bytes, reason: str
) -> None:
    response = ovms.post(path, content=body)
    assert (response.status_code, response.json()) == (412, {"error": NOT_JSON + reason})


def test_a_stream_that_is_null_is_not_given(ovms: httpx.Client) -> None:
    assert ovms.post(PATH, json=chat("Hi", stream=None)).status_code == 200


def test_an_unknown_model_comes_before_a_wrong_field(ovms: httpx.Client) -> None:
    response = ovms.post(PATH, json={"model": "nobody", "temperature": 9})
    assert response.status_code == 404
    assert response.json() == {
        "error": "Mediapipe graph definition with requested name is not found"
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": 3}, "temperature must be <= 2.0, given 3"),
        ({"max_tokens": 0}, "max_tokens must be >= 1, given 0"),
        ({"messages": []}, "messages must"),
        ({"stream_options": {"include_usage": True}}, "stream_options needs stream to be true"),
        (
            {"num_assistant_tokens": 5},
            "num_assistant_tokens needs --prompt-lookup, --draft-model or --mtp",
        ),
        ({"seed": 10**400}, "seed must be"),
    ],
)
def test_a_wrong_field_is_named_within_ovms_words(
    ovms: httpx.Client, fields: Json, message: str
) -> None:
    response = ovms.post(PATH, json=chat("Hi") | fields)
    assert response.status_code == 400
    assert response.json().keys() == {"error"}
    assert response.json()["error"].startswith(WRAPPER + message)


def test_a_number_that_is_none_is_named(ovms: httpx.Client) -> None:
    response = ovms.post(PATH, content='{"model": "parrot", "seed": 1e999}')
    assert response.status_code == 400
    assert response.json()["error"].startswith(f"{WRAPPER}seed must be a finite number")


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/nowhere", 400, "Invalid request URL"),
        ("POST", "/v3/chat/completion", 400, "Invalid request URL"),
        ("POST", "/v1/config/store", 400, "Invalid request URL"),
        ("PUT", PATH, 406, "Unsupported method"),
        ("PUT", "/v3/models", 406, "Unsupported method"),
        ("GET", PATH, 406, "Unsupported method"),
        ("GET", "/v1/chat/completions", 406, "Unsupported method"),
        ("GET", "/v3/models/nobody", 404, "Model not found"),
        ("GET", "/v3/v1/models/nobody", 404, "Model not found"),
        (
            "GET",
            "/v2/models/nobody/ready",
            404,
            "Mediapipe graph definition with requested name is not found",
        ),
    ],
)
def test_wrong_paths_and_methods(
    ovms: httpx.Client, method: str, path: str, status: int, text: str
) -> None:
    response = ovms.request(method, path)
    assert (response.status_code, response.json()) == (status, {"error": text})


def test_a_wrong_key_is_a_401() -> None:
    config = ServerConfig(profile="ovms", api_key=("sk-right",))
    with running_server(config=config) as server, server.client() as http:
        refused = [
            http.get("/v3/models"),
            http.post(PATH, json=chat("Hi"), headers={"authorization": "Bearer no"}),
        ]
        ready = http.get("/v2/health/ready")
        right = http.post(PATH, json=chat("Hi"), headers={"authorization": "Bearer sk-right"})
    for response in refused:
        assert response.status_code == 401
        assert response.json() == {
            "error": "Unauthorized request due to invalid or missing api-key"
        }
    assert (ready.status_code, right.status_code) == (200, 200)


def test_a_body_that_is_too_long() -> None:
    config, limits = ServerConfig(profile="ovms"), LimitsConfig(max_body_bytes=1024)
    with running_server(limits=limits, config=config) as server:
        response = httpx.post(server.url + PATH, content=b" " * 1025)
    assert (response.status_code, response.json()) == (
        413,
        {"error": "the request body must be <= 1024 bytes long"},
    )


def test_a_failure_within_a_stream_is_an_event(ovms: httpx.Client) -> None:
    *events, last = read_events(ovms.post(PATH, json=chat("ab<|fail|>", stream=True)))
    assert "a" in events[0]
    assert last.startswith('{"error":"')
    unary = ovms.post(PATH, json=chat("ab<|fail|>"))
    assert unary.status_code == 500
    assert list(unary.json()) == ["error"]


def test_the_default_profile_has_the_errors_of_openai(http: httpx.Client) -> None:
    assert read_error(http.post(PATH, content="{"))["type"] == "invalid_request_error"
    assert http.get("/nowhere").status_code == 404
    assert http.put(PATH).status_code == 405
