"""Other servers' names of our fields are read as ours."""

import logging
import re

import httpx
import msgspec
import pytest

from ouzel.api.openai.embeddings import EmbeddingsRequest
from ouzel.errors import InvalidRequest
from ouzel.sampling import SamplingFields
from ouzel.wire.aliases import ALIASES
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import decode_object
from tests.api.requests import Json, chat, read_error

VALUES: dict[str, object] = {
    "bad_words": ["x"],
    "dimensions": 3,
    "ignore_eos": True,
    "include_stop_str_in_output": True,
    "max_tokens": 3,
    "min_tokens": 2,
    "normalize": True,
    "repeat_last_n": 64,
    "repetition_penalty": 1.5,
    "seed": 7,
    "stop": ["b"],
    "typical_p": 0.5,
}


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_is_the_field_itself(alias: str) -> None:
    name, value = ALIASES[alias], VALUES[ALIASES[alias]]
    kind: type[msgspec.Struct] = ChatCompletionRequest
    body: Json = chat("Hi")
    if name in EmbeddingsRequest.__struct_fields__:
        kind, body = EmbeddingsRequest, {"input": "Hi"}
    else:
        assert name in {
            *SamplingFields.__struct_fields__,
            "max_tokens",
            "stop",
            "include_stop_str_in_output",
        }
    for fields in (
        {alias: value},
        {alias: value, name: value},
        {alias: value, name: None},
        {alias: None, name: value},
    ):
        assert getattr(decode_object({**body, **fields}, kind), name) == value
    with pytest.raises(
        InvalidRequest, match=f"{alias} must be the same as {name}: 0, given"
    ) as caught:
        decode_object({**body, alias: value, name: 0}, kind)
    assert caught.value.param == alias


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"repeat_penalty": 11}, "repeat_penalty", "repeat_penalty must be <= 10.0, given 11"),
        ({"random_seed": "x"}, "random_seed", 'random_seed must be an integer, given "x"'),
        (
            {"stop_sequences": ["a", 1]},
            "stop_sequences[1]",
            "stop_sequences[1] must be a string, given 1",
        ),
        (
            {"n_predict": "x", "max_tokens": None},
            "n_predict",
            'n_predict must be an integer, given "x"',
        ),
        ({"n_predict": 0}, "n_predict", "n_predict must be >= 1, given 0"),
        (
            {"max_new_tokens": 2, "min_new_tokens": 3},
            "min_new_tokens",
            "min_new_tokens must be <= 2, given 3",
        ),
        (
            {"n_predict": 3, "num_predict": 4},
            "num_predict",
            "num_predict must be the same as max_tokens: 3, given 4",
        ),
    ],
)
def test_an_error_names_the_field_as_the_client_did(
    http: httpx.Client, fields: dict[str, object], param: str, message: str
) -> None:
    error = read_error(http.post("/v1/chat/completions", json=chat("Hi", **fields)))
    assert (error["param"], error["message"]) == (param, message)


def test_sglangs_name_keeps_the_stop_string(http: httpx.Client) -> None:
    for keeps, said in ((True, "abc"), (False, "a")):
        answer = http.post(
            "/v1/chat/completions", json=chat("abcdef", stop="bc", no_stop_trim=keeps)
        )
        assert answer.json()["choices"][0]["message"]["content"] == said


def test_an_alias_is_no_unknown_field(http: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="ouzel"):
        answer = http.post("/v1/chat/completions", json=chat("abcdef", n_predict=3, colour="red"))
    assert answer.json()["choices"][0]["message"]["content"] == "abc"
    assert "ignored fields: 'colour'" in caplog.text


def test_an_error_that_depends_on_the_prompt_names_the_alias_too(http: httpx.Client) -> None:
    bodies: dict[str, Json] = {"chat/completions": chat("Hi"), "responses": {"input": "Hi"}}
    for path, body in bodies.items():
        error = read_error(http.post(f"/v1/{path}", json={**body, "min_new_tokens": 5000}))
        assert error["param"] == "min_new_tokens"
        assert re.fullmatch(r"min_new_tokens must be <= 40\d\d, given 5000", error["message"])
