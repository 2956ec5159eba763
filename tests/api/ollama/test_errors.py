"""Each error is one string, and the server goes on serving."""

import httpx
import pytest

from ouzel.config import LimitsConfig, Profile, ServerConfig
from tests.api.malformed import malformed_requests
from tests.api.ollama.lines import Json, chat, read_answer, read_error, read_lines
from tests.api.serving import running_server

GOOD: dict[str, Json] = {
    "/api/chat": chat("Hi", stream=False),
    "/api/generate": {"model": "parrot", "prompt": "Hi", "stream": False},
    "/api/show": {"model": "parrot"},
    "/api/pull": {"model": "parrot"},
}


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
def test_each_malformed_request_is_answered_with_the_name_of_its_field(
    ollama: httpx.Client, path: str
) -> None:
    requests = list(malformed_requests(path, GOOD[path]))
    assert len(requests) > 100
    for request in requests:
        response = ollama.post(path, json=request.body)
        assert 400 <= response.status_code < 500, (request, response.text)
        # errors give max_output_tokens its Ollama name
        name = "num_predict" if request.field == "max_output_tokens" else request.field
        assert name in read_error(response, response.status_code), request
    read_answer(ollama.post(path, json=GOOD[path]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"options": {"temperature": 3}}, "options.temperature must be <= 2.0, given 3"),
        ({"options": {"top_p": "much"}}, 'options.top_p must be a number, given "much"'),
        ({"options": {"num_predict": -3}}, "options.num_predict must be >= -2, given -3"),
        ({"options": {"mirostat": 1}}, "options.mirostat must be <= 0, given 1"),
        ({"options": {"tfs_z": 0.5}}, "options.tfs_z must be >= 1.0, given 0.5"),
        (
            {"options": {"min_tokens": 9, "num_predict": 4}},
            "options.min_tokens must be <= 4, given 9",
        ),
        (
            {"options": {"repeat_penalty": 1.1, "repeat_last_n": -2}},
            "options.repeat_last_n must be >= -1, given -2",
        ),
        (
            {"options": {"presence_penalty": 1, "penalize_newline": False}},
            "options.penalize_newline must be true",
        ),
        ({"options": {"stop": [""]}}, "options.stop[0] must have a length >= 1"),
        ({"options": []}, "options must be an object, given []"),
        ({"keep_alive": "soon"}, "keep_alive must match"),
        ({"format": "xml"}, "format must be"),
        ({"format": {"type": "object", "properties": {"a": {"type": "nothing"}}}}, "format"),
        ({"think": "a lot"}, "think must be"),
        ({"top_logprobs": 2}, "top_logprobs needs logprobs to be true, given 2"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs must be <= 20, given 21"),
        ({"temperature": 3}, "options.temperature must be <= 2.0, given 3"),
        ({"n": 2}, "n is not a field of this endpoint, given 2"),
        ({"tool_choice": "required"}, "tool_choice needs tools"),
        (
            {"response_format": {"type": "text"}},
            "response_format is not a field of this endpoint (use format)",
        ),
        ({"prompt": "Hi"}, "prompt is not supported by this server"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content must be"),
        ({"messages": ["Hi"]}, "messages[0] must be an object"),
        ({"messages": [{"content": "Hi"}]}, "messages[0].role must be"),
        (
            {"messages": [{"role": "user", "images": ["aGk="]}]},
            "messages[0].images must not be given",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [1]}]},
            "messages[0].tool_calls[0] must be an object",
        ),
        ({"messages": [{"role": "user", "content": "x" * 5000}]}, ""),
        (
            {"tools": [{"type": "function", "function": {"name": "a b"}}]},
            "tools[0].function.name must match",
        ),
        ({"tools": [{"type": "function"}]}, "tools[0].function is required"),
    ],
)
def test_a_wrong_field_is_named_as_ollama_names_it(
    ollama: httpx.Client, fields: Json, message: str
) -> None:
    assert read_error(ollama.post("/api/chat", json=chat("Hi", **fields)), 400).startswith(message)


def test_a_model_that_cannot_think_says_so() -> None:
    with running_server() as server, server.client() as http:
        for think in (True, "low"):
            message = read_error(http.post("/api/chat", json=chat("Hi", think=think)), 400)
            assert message == '"parrot" does not support thinking'
        assert read_answer(http.post("/api/chat", json=chat("Hi", think=False, stream=False)))[
            "done"
        ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the body must be a JSON object"),
        (b"[]", "the body must be"),
        (b"{", "the body is not valid JSON"),
    ],
)
@pytest.mark.parametrize("path", GOOD)
def test_a_body_that_is_no_object_is_refused(
    ollama: httpx.Client, path: str, body: bytes, reason: str
) -> None:
    assert read_error(ollama.post(path, content=body), 400).startswith(reason)


def test_paths_and_methods_that_are_not_there(ollama: httpx.Client) -> None:
    assert read_error(ollama.get("/api/nothing"), 404).startswith("unknown URL: GET /api/nothing")
    response = ollama.get("/api/chat")
    assert "POST" in response.headers["allow"]
    assert "allowed: " in read_error(response, 405)


def test_a_failure_in_a_stream_is_its_last_line(ollama: httpx.Client) -> None:
    *pieces, last = read_lines(ollama.post("/api/chat", json=chat("ab|fail|")))
    assert last == {"error": "scripted failure"}
    assert not any(piece["done"] for piece in pieces)
    read_error(ollama.post("/api/chat", json=chat("ab|fail|", stream=False)), 500)


@pytest.mark.parametrize("profile", ["openai", "ovms"])
def test_errors_of_keys_and_limits_have_ollamas_form_in_any_profile(profile: Profile) -> None:
    config = ServerConfig(api_key=("secret",), profile=profile)
    limits = LimitsConfig(max_body_bytes=200)
    with running_server(config=config, limits=limits) as server, server.client() as http:
        response = http.post("/api/chat", json=chat("Hi"))
        assert "an API key is needed" in read_error(response, 401)
        http.headers["authorization"] = "Bearer secret"
        assert "must be <= 200 bytes" in read_error(
            http.post("/api/chat", json=chat("Hi" * 100)), 413
        )
        assert read_answer(http.post("/api/chat", json=chat("Hi", stream=False)))["done"]


def test_an_overloaded_server_says_when_to_come_back() -> None:
    with (
        running_server(engine_factory="create_grammar_timeout_engine") as server,
        server.client() as http,
    ):
        for stream in (True, False):
            response = http.post("/api/chat", json=chat("Hi", stream=stream, format="json"))
            assert "try again later" in read_error(response, 429)
            assert response.headers["retry-after"] == "5"
