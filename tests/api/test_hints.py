"""Peers' fields that change no answer are taken and logged; fields that change it are refused."""

import logging

import httpx
import pytest

from ouzel.sampling import SamplingFields
from ouzel.wire.hints import HINTS
from ouzel.wire.unsupported import NEUTRAL_VALUES
from tests.api.requests import Json, chat, read_error


def test_hints_are_taken_with_one_line_of_the_log(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    hints = HINTS.keys() - {"prediction", "store"}  # fields of chats
    fields = dict.fromkeys(hints, "x")
    with caplog.at_level(logging.INFO, logger="ouzel"):
        answer = http.post("/v1/chat/completions", json=chat("Hi", **fields))
    assert answer.json()["choices"][0]["message"]["content"] == "Hi"
    [line] = [record.message for record in caplog.records if "hints" in record.message]
    assert "ttl (the model stays loaded)" in line
    assert all(name in line for name in hints)
    assert "ignored" not in caplog.text


def test_store_is_a_hint_where_nothing_can_be_stored(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    body = {"prompt": "Hi", "max_tokens": 1, "store": True}
    with caplog.at_level(logging.INFO, logger="ouzel"):
        assert http.post("/v1/completions", json=body).status_code == 200
    assert "store (only responses and chats are stored)" in caplog.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", chat("Hi")),  # the server makes no proposals
        ("completions", {"prompt": "Hi", "max_tokens": 1}),
        ("responses", {"input": "Hi"}),
        ("messages", chat("Hi", max_tokens=9)),
    ],
)
def test_a_prediction_that_is_not_used_is_a_hint(
    http: httpx.Client, caplog: pytest.LogCaptureFixture, path: str, body: Json
) -> None:
    with caplog.at_level(logging.INFO, logger="ouzel"):
        answer = http.post(
            f"/v1/{path}", json=body | {"prediction": {"type": "content", "content": "x" * 9999}}
        )
    assert answer.status_code == 200, answer.text
    [line] = [record.getMessage() for record in caplog.records if "hints" in record.getMessage()]
    assert line.startswith("taken as hints: prediction (")


def test_a_field_without_effect_is_no_hint(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ouzel"):
        assert (
            http.post(
                "/v1/chat/completions", json=chat("Hi", store=False, verbosity=None)
            ).status_code
            == 200
        )
    assert "hints" not in caplog.text


def test_no_field_is_in_two_tables() -> None:
    assert not HINTS.keys() & NEUTRAL_VALUES.keys()
    assert not NEUTRAL_VALUES.keys() & {*SamplingFields.__struct_encode_fields__}


WEB_UI = {  # fields that llama.cpp's page sends beside the messages
    "stream": False,
    "reasoning_format": "auto",
    "max_tokens": -1,
    "temperature": 0.8,
    "dynatemp_range": 0,
    "dynatemp_exponent": 1,
    "top_k": 40,
    "top_p": 0.95,
    "min_p": 0.05,
    "xtc_probability": 0,
    "xtc_threshold": 0.1,
    "typ_p": 1,
    "repeat_last_n": 64,
    "repeat_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "dry_multiplier": 0,
    "dry_base": 1.75,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": -1,
    "timings_per_token": True,
    "return_progress": True,
}


def test_a_page_that_sends_every_parameter_gets_its_answer(http: httpx.Client) -> None:
    answer = http.post(
        "/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hi"}], **WEB_UI}
    )
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"lora": [{"id": 0, "scale": 1}]}, "lora"),
        ({"t_max_predict_ms": 500}, "t_max_predict_ms"),
        ({"num_ctx": 8192}, "num_ctx"),
        ({"custom_params": {"a": 1}}, "custom_params"),
        ({"safe_prompt": True}, "safe_prompt"),
        ({"transforms": ["middle-out"]}, "transforms"),
        ({"system": "Be brief."}, "system"),
        ({"moderation": {"model": "omni"}}, "moderation"),
        ({"web_search_options": {}}, "web_search_options"),
    ],
)
def test_a_field_that_would_change_the_answer_is_refused(
    http: httpx.Client, fields: dict[str, object], param: str
) -> None:
    answer = http.post("/v1/chat/completions", json=chat("Hi", **fields))
    assert (answer.status_code, read_error(answer)["param"]) == (400, param)
    assert "is not supported" in read_error(answer)["message"]
