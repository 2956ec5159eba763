"""The requests of LMI's documentation, sent byte for byte, are answered in its chat schema."""

import json

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.lmi.answers import PREFIX, read_lines, read_refusal
from tests.api.requests import Json, read_events
from tests.api.serving import running_server

# The example request of LMI's page "Chat Completions API Schema".
EXAMPLE = """{
    "messages": [
      {
        "role": "system",
        "content": "You are a helpful assistant."
      },
      {
        "role": "user",
        "content": "What is deep learning?"
      }
    ],
    "logprobs":true,
    "top_logprobs":1,
    "max_tokens":256
  }"""
HEADERS = {"Content-type": "application/json"}
PATHS = ["/v1/chat/completions", "/invocations", "/predictions/org_parrot", "/models/parrot/invoke"]


def build_chat(text: str, **fields: object) -> Json:
    return {"messages": [{"role": "user", "content": text}], **fields}


@pytest.mark.parametrize("path", PATHS)
def test_the_documented_request_gives_the_documented_shape(lmi: httpx.Client, path: str) -> None:
    response = lmi.post(path, content=EXAMPLE, headers=HEADERS)
    answer = response.json()
    assert response.headers["content-type"] == "application/json"
    assert list(answer) == ["id", "object", "created", "choices", "usage"]
    assert answer["id"].startswith("chatcmpl-")
    assert answer["object"] == "chat.completion"
    assert isinstance(answer["created"], int)
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "What is deep learning?"}
    assert (choice["index"], choice["finish_reason"]) == (0, "eos_token")
    assert list(choice["logprobs"]) == ["content"]
    assert choice["logprobs"]["content"][4] == {
        "token": " ",
        "logprob": 0.0,
        "bytes": [32],
        "top_logprobs": [{"token": " ", "logprob": 0.0, "bytes": [32]}],
    }
    assert answer["usage"] == {"prompt_tokens": 79, "completion_tokens": 23, "total_tokens": 102}


def test_the_documented_request_streamed_is_one_line_per_piece(lmi: httpx.Client) -> None:
    body = json.loads(EXAMPLE) | {"stream": True}
    chunks = read_lines(lmi.post("/v1/chat/completions", json=body))
    assert all(list(chunk) == ["id", "object", "created", "choices"] for chunk in chunks)
    assert {(chunk["id"], chunk["object"]) for chunk in chunks} == {
        (chunks[0]["id"], "chat.completion.chunk")
    }
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert choices[0]["delta"]["role"] == "assistant"
    # a slow reader gets several tokens in the first chunk
    assert choices[0]["delta"]["content"].startswith("W")
    assert choices[0]["logprobs"]["content"][0] == {
        "token": "W",
        "logprob": 0.0,
        "bytes": [87],
        "top_logprobs": [{"token": "W", "logprob": 0.0, "bytes": [87]}],
    }
    assert all(list(choice["delta"]) == ["content"] for choice in choices[1:])
    assert [choice["finish_reason"] for choice in choices[:-1]] == [None] * (len(choices) - 1)
    assert choices[-1]["finish_reason"] == "eos_token"


@pytest.mark.parametrize(
    ("fields", "content", "finish_reason"),
    [
        ({}, "Hello, wörld 🦉", "eos_token"),
        ({"max_tokens": 5}, "Hello", "length"),
        ({"stop": ["test", "wö"]}, "Hello, ", "stop_sequence"),
        ({"stop": "wö", "include_stop_str_in_output": True}, "Hello, wö", "stop_sequence"),
        ({"ignore_eos": True, "max_tokens": 20}, "Hello, wörld 🦉", "length"),
        ({"stop_token_ids": [44]}, "Hello", "stop_sequence"),
        (
            {
                "top_p": 1.0,
                "temperature": 0.0,
                "frequency_penalty": -2.0,
                "presence_penalty": 2.0,
                "seed": 7,
            },
            None,
            None,
        ),
        ({"logit_bias": {"243": -100.0, "64": -100.0}}, None, None),
        ({"user": "test", "model": "gpt2", "top_logprobs": None, "n": None}, None, None),
        ({"max_tokens": "5", "temperature": "0.5", "stream": None}, "Hello", "length"),
    ],
)
@pytest.mark.parametrize("n", [1, 3])
def test_a_folded_stream_is_the_unary_answer(
    lmi: httpx.Client, n: int, fields: Json, content: str | None, finish_reason: str | None
) -> None:
    body = build_chat("Hello, wörld 🦉", **{"n": n, **fields})
    unary = lmi.post("/invocations", json=body).json()["choices"]
    chunks = read_lines(lmi.post("/invocations", json=body | {"stream": True}))
    assert len(unary) == (fields.get("n", n) or 1)
    for expected in unary:
        own = [
            chunk["choices"][0]
            for chunk in chunks
            if chunk["choices"][0]["index"] == expected["index"]
        ]
        assert (
            "".join(choice["delta"]["content"] for choice in own) == expected["message"]["content"]
        )
        assert own[-1]["finish_reason"] == expected["finish_reason"]
        assert expected["message"]["content"] == (content or "Hello, wörld 🦉")
        assert expected["finish_reason"] == (finish_reason or "eos_token")


def test_the_last_text_has_the_finish_reason(lmi: httpx.Client) -> None:
    chunks = read_lines(
        lmi.post("/invocations", json=build_chat("Hello", stream=True, max_tokens=1))
    )
    assert [chunk["choices"] for chunk in chunks] == [
        [
            {
                "index": 0,
                "delta": {"role": "assistant", "content": "H"},
                "logprobs": None,
                "finish_reason": "length",
            }
        ]
    ]


def test_events_are_sent_to_clients_that_accept_them(lmi: httpx.Client) -> None:
    body = build_chat("Hi", stream=True)
    events = read_events(
        lmi.post("/v1/chat/completions", json=body, headers={"accept": "text/event-stream"})
    )
    assert events.pop() == "[DONE]"
    assert "".join(json.loads(event)["choices"][0]["delta"]["content"] for event in events) == "Hi"


def test_without_a_limit_lmis_limit_applies(lmi: httpx.Client) -> None:
    answer = lmi.post("/invocations", json=build_chat("a" * 50)).json()
    assert answer["usage"]["completion_tokens"] == 30
    assert answer["choices"][0]["finish_reason"] == "length"


def test_the_limit_can_be_configured() -> None:
    with running_server(config=ServerConfig(lmi_default_max_tokens=3)) as server:
        answer = httpx.post(
            f"{server.url}/invocations", json=build_chat("abcdef"), timeout=None
        ).json()
    assert answer["choices"][0]["message"]["content"] == "abc"


def test_usage_is_in_a_stream_where_it_is_asked_for(lmi: httpx.Client) -> None:
    body = build_chat("Hi", stream=True, stream_options={"include_usage": True})
    chunks = read_lines(lmi.post("/invocations", json=body))
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {"prompt_tokens": 21, "completion_tokens": 3, "total_tokens": 24}


def test_every_alternative_is_shown_and_the_sampled_token_among_them(lmi: httpx.Client) -> None:
    def top(**fields: object) -> list[str]:
        answer = lmi.post("/invocations", json=build_chat("Hi", logprobs=True, **fields)).json()
        return [
            entry["token"]
            for entry in answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        ]

    assert top(top_logprobs=3) == ["H", "I", "J"]
    assert top() == top(top_logprobs=0) == ["H"]


def test_bytes_are_utf_8(lmi: httpx.Client) -> None:
    answer = lmi.post("/invocations", json=build_chat("é", logprobs=True, top_logprobs=1)).json()
    shown = answer["choices"][0]["logprobs"]["content"]
    assert [byte for entry in shown for byte in entry["bytes"]] == list("é".encode())


def test_top_logprobs_counts_only_beside_logprobs(lmi: httpx.Client) -> None:
    answer = lmi.post("/invocations", json=build_chat("Hi", top_logprobs=30)).json()
    assert answer["choices"][0]["logprobs"] is None


def test_streamed_logprobs_can_be_as_lmi_has_them() -> None:
    with running_server(config=ServerConfig(lmi_strict_logprobs=True)) as server:
        body = build_chat("Hi", stream=True, logprobs=True, top_logprobs=1)
        chunks = read_lines(httpx.post(f"{server.url}/invocations", json=body, timeout=None))
    [logprobs] = chunks[0]["choices"][0]["logprobs"]
    assert logprobs.keys() == {"content"}
    assert logprobs["content"][0] == {  # a slow reader gets the next token in the same chunk
        "token": "H",
        "logprob": 0.0,
        "bytes": [72],
        "top_logprobs": [{"token": 0.0, "logprob": 0.0, "bytes": [72]}],
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": 9}, "temperature must be <= 2.0, given 9"),
        ({"temperature": -1}, "temperature must be >= 0.0, given -1"),
        ({"frequency_penalty": -3}, "frequency_penalty must be >= -2.0, given -3"),
        ({"frequency_penalty": 3}, "frequency_penalty must be <= 2.0, given 3"),
        ({"presence_penalty": -3}, "presence_penalty must be >= -2.0, given -3"),
        ({"presence_penalty": 3}, "presence_penalty must be <= 2.0, given 3"),
        ({"logit_bias": {"2": 200}}, "logit_bias.2 must be <= 100.0, given 200"),
        ({"logit_bias": {"2": -200}}, "logit_bias.2 must be >= -100.0, given -200"),
        (
            {"logit_bias": {"2435": -100.0}},
            "logit_bias keys must be token ids from 0 to 259, given '2435'",
        ),
        ({"logprobs": True, "top_logprobs": -2}, "top_logprobs must be >= -1, given -2"),
        ({"logprobs": True, "top_logprobs": 30}, "top_logprobs must be <= 20, given 30"),
        ({"top_p": 7}, "top_p must be <= 1.0, given 7"),
        ({"max_tokens": 0}, "max_tokens must be >= 1, given 0"),
        ({"n": 0}, "n must be >= 1, given 0"),
        ({"messages": []}, "messages must be a non-empty list"),
        (
            {"messages": [{"roles": "user", "content": "Hi"}]},
            "messages[0].role must be a non-empty string",
        ),
        ({"model": 5}, "model must be a string, given 5"),
    ],
)
def test_a_wrong_field_is_named(lmi: httpx.Client, fields: Json, message: str) -> None:
    assert read_refusal(
        lmi.post("/v1/chat/completions", json=build_chat("Hi") | fields)
    ).startswith(PREFIX + message)


def test_the_default_profile_chats_as_openai_does(http: httpx.Client) -> None:
    assert (
        http.post("/v1/chat/completions", json=build_chat("Hi", model="owl")).json()["error"][
            "param"
        ]
        == "model"
    )
    assert (
        http.post("/v1/chat/completions", json=build_chat("Hi", model="parrot")).json()["model"]
        == "org/parrot"
    )
