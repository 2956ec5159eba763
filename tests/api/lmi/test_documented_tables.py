"""Each row of the tables in LMI's page "Chat Completions API Schema" (0.30) holds.

It holds in whole answers and in streams.
"""

from typing import Any  # JSON

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.lmi.answers import read_lines
from tests.api.requests import Json
from tests.api.serving import running_server

MESSAGES = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "What is deep learning? é🦉"},
]
# Every field of the request's table, with a value that the table allows.
FIELDS: Json = {
    "model": "gpt2",
    "frequency_penalty": -2.0,
    "logit_bias": {"243": -100.0, "64": -100.0},
    "logprobs": True,
    "top_logprobs": 2,
    "max_tokens": 256,
    "n": 2,
    "presence_penalty": 2.0,
    "seed": -7,
    "stop": ["test"],
    "stream": False,
    "temperature": 2.0,
    "top_p": 0.5,
    "user": "test",
    "ignore_eos": False,
}


def chat(client: httpx.Client, **fields: object) -> httpx.Response:
    response = client.post("/invocations", json={"messages": MESSAGES, **fields})
    assert response.status_code == 200, response.text
    return response


def check_top_logprob(entry: Any) -> None:
    assert list(entry) == [
        "token",
        "logprob",
        "bytes",
        *(["top_logprobs"] if "top_logprobs" in entry else []),
    ]
    assert isinstance(entry["token"], str) and isinstance(entry["logprob"], float)
    assert entry["bytes"] and all(
        isinstance(byte, int) and 0 <= byte < 256 for byte in entry["bytes"]
    )


def check_logprobs(logprobs: Any, text: str) -> None:
    """Checks that the bytes begin with the text, and that every token has alternatives."""
    assert list(logprobs) == ["content"]
    for entry in logprobs["content"]:
        check_top_logprob(entry)
        assert entry["top_logprobs"]
        for alternative in entry["top_logprobs"]:
            check_top_logprob(alternative)
    told = b"".join(bytes(entry["bytes"]) for entry in logprobs["content"])
    assert told.startswith(text.encode())


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_of_the_request_is_taken_alone(lmi: httpx.Client, field: str) -> None:
    assert chat(lmi, **{field: FIELDS[field]}).json()["object"] == "chat.completion"


@pytest.mark.parametrize(
    "fields",
    [
        {"seed": 2**63 - 1},
        {"stop": "test"},
        {"temperature": 0.0},
        {"top_logprobs": 20, "logprobs": True},
        {"top_logprobs": 0, "logprobs": True},
        {"ignore_eos": True, "max_tokens": 2},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]},
    ],
)
def test_the_other_values_of_the_table_are_taken(lmi: httpx.Client, fields: Json) -> None:
    assert chat(lmi, **fields).json()["choices"]


def test_a_whole_answer_has_the_documented_objects(lmi: httpx.Client) -> None:
    answer = chat(lmi, **FIELDS).json()

    assert list(answer) == ["id", "object", "created", "choices", "usage"]
    assert (type(answer["id"]), answer["object"], type(answer["created"])) == (
        str,
        "chat.completion",
        int,
    )
    assert len(answer["choices"]) == 2
    for index, choice in enumerate(answer["choices"]):
        assert list(choice) == ["index", "message", "logprobs", "finish_reason"]
        assert choice["index"] == index and choice["finish_reason"] in (
            "length",
            "eos_token",
            "stop_sequence",
        )
        assert (
            list(choice["message"]) == ["role", "content"]
            and choice["message"]["role"] == "assistant"
        )
        check_logprobs(choice["logprobs"], choice["message"]["content"])
    usage = answer["usage"]
    assert sorted(usage) == ["completion_tokens", "prompt_tokens", "total_tokens"]
    assert usage["prompt_tokens"] + usage["completion_tokens"] == usage["total_tokens"]
    assert all(isinstance(number, int) and number > 0 for number in usage.values())


def test_a_stream_has_the_documented_objects(lmi: httpx.Client) -> None:
    response = chat(lmi, **{**FIELDS, "n": 1, "stream": True})

    assert response.headers["content-type"] == "application/jsonlines"
    lines = read_lines(response)
    for number, line in enumerate(lines):
        assert list(line) == ["id", "object", "created", "choices"]
        assert (line["id"], line["object"], type(line["created"])) == (
            lines[0]["id"],
            "chat.completion.chunk",
            int,
        )
        [choice] = line["choices"]
        assert list(choice) == ["index", "delta", "logprobs", "finish_reason"]
        assert choice["index"] == 0
        assert sorted(choice["delta"]) == (["content", "role"] if number == 0 else ["content"])
        if choice["delta"]["content"]:
            check_logprobs(choice["logprobs"], "")
        assert (choice["finish_reason"] is None) == (line is not lines[-1])
    assert lines[-1]["choices"][0]["finish_reason"] in ("length", "eos_token", "stop_sequence")


def test_without_logprobs_the_field_is_null(lmi: httpx.Client) -> None:
    assert chat(lmi).json()["choices"][0]["logprobs"] is None
    assert all(
        line["choices"][0]["logprobs"] is None for line in read_lines(chat(lmi, stream=True))
    )


def test_the_documented_stream_with_its_own_logprobs() -> None:
    """In the page's example, logprobs is a list, and an alternative's token is a number."""
    config = ServerConfig(profile="lmi", lmi_strict_logprobs=True)
    with running_server(config=config) as server, server.client() as http:
        lines = read_lines(chat(http, logprobs=True, top_logprobs=1, stream=True, max_tokens=4))
        whole = chat(http, logprobs=True, top_logprobs=1, max_tokens=4).json()

    for line in lines:
        [logprobs] = line["choices"][0]["logprobs"]
        assert list(logprobs) == ["content"]
        for entry in logprobs["content"]:
            [alternative] = entry["top_logprobs"]
            assert alternative == {
                "token": entry["logprob"],
                "logprob": entry["logprob"],
                "bytes": entry["bytes"],
            }
    check_logprobs(whole["choices"][0]["logprobs"], whole["choices"][0]["message"]["content"])
