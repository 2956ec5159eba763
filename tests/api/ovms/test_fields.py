"""OVMS reads some fields in its own way, in whole answers and in streams."""

import json
import logging
from typing import Any  # JSON

import httpx
import pytest

from ouzel.config import ServerConfig
from ouzel.options.options import read_options
from tests.api.requests import Json, chat, join_content, read_events
from tests.api.serving import running_server

CHAT = "/v3/chat/completions"
COMPLETIONS = "/v3/completions"
PROMPT: Json = {"model": "parrot", "prompt": "añb", "max_tokens": 12}


def post_choices(http: httpx.Client, path: str, body: Json) -> list[dict[str, Any]]:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["choices"]
    return found


def post_texts(http: httpx.Client, **fields: object) -> list[str]:
    return [choice["text"] for choice in post_choices(http, COMPLETIONS, PROMPT | fields)]


def post_streamed_texts(http: httpx.Client, **fields: object) -> list[str]:
    events = read_events(http.post(COMPLETIONS, json=PROMPT | fields | {"stream": True}))
    pieces = [choice for event in events[:-1] for choice in json.loads(event)["choices"]]
    num_choices = 1 + max(piece["index"] for piece in pieces)
    return [
        "".join(piece["text"] for piece in pieces if piece["index"] == index)
        for index in range(num_choices)
    ]


def test_a_message_always_has_a_text_and_a_list_of_calls(ovms: httpx.Client) -> None:
    (choice,) = post_choices(ovms, CHAT, chat(""))
    assert choice["message"]["content"] == ""
    assert choice["message"]["tool_calls"] == []


def test_the_stop_string_is_shown_in_streams_only(ovms: httpx.Client) -> None:
    asked: Json = {"stop": ["lo"]}
    (choice,) = post_choices(ovms, CHAT, chat("Hello", **asked))
    assert (choice["message"]["content"], choice["finish_reason"]) == ("Hel", "stop")
    assert (
        join_content(read_events(ovms.post(CHAT, json=chat("Hello", stream=True, **asked))))
        == "Hello"
    )


@pytest.mark.parametrize(("shows", "text"), [(True, "Hello"), (False, "Hel")])
def test_the_stop_string_is_shown_or_hidden_as_the_request_says(
    ovms: httpx.Client, shows: bool, text: str
) -> None:
    asked: Json = {"stop": "lo", "include_stop_str_in_output": shows}
    (choice,) = post_choices(ovms, CHAT, chat("Hello", **asked))
    assert choice["message"]["content"] == text
    assert (
        join_content(read_events(ovms.post(CHAT, json=chat("Hello", stream=True, **asked)))) == text
    )


def test_a_stream_without_a_stop_string_ends_as_it_does_elsewhere(ovms: httpx.Client) -> None:
    assert (
        join_content(read_events(ovms.post(CHAT, json=chat("Hello", stream=True, stop=[]))))
        == "Hello"
    )


@pytest.mark.parametrize("n", [1, 2, 4])
def test_best_of_is_a_number_of_beams(random_ovms: httpx.Client, n: int) -> None:
    found = post_texts(random_ovms, best_of=4, n=n)
    assert found == post_texts(random_ovms, num_beams=4, n=n)
    assert len(set(found)) == n
    assert post_streamed_texts(random_ovms, best_of=4, n=n) == found


def test_length_penalty_weighs_beams(random_ovms: httpx.Client) -> None:
    asked: Json = {"best_of": 4, "stop_token_ids": [*range(100)], "max_tokens": 12}
    [short] = post_texts(random_ovms, length_penalty=-9, **asked)
    [long] = post_texts(random_ovms, length_penalty=9, **asked)
    assert len(short) < len(long)


@pytest.mark.parametrize("best_of", [1, "1", None])
def test_a_best_of_one_samples(random_ovms: httpx.Client, best_of: object) -> None:
    assert post_texts(random_ovms, best_of=best_of, seed=1) == post_texts(random_ovms, seed=1)
    assert post_texts(random_ovms, best_of=best_of, seed=1) != post_texts(
        random_ovms, best_of=best_of, seed=2
    )


def test_several_choices_without_best_of_are_samples(random_ovms: httpx.Client) -> None:
    found = post_texts(random_ovms, n=3, seed=1)
    assert len(set(found)) == 3
    assert post_streamed_texts(random_ovms, n=3, seed=1) == found


def test_fields_of_the_other_way_to_choose_are_not_read_and_named(
    random_ovms: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    assert post_texts(
        random_ovms, best_of=3, temperature=0.7, top_p=0.9, top_k=3, min_p=0.1
    ) == post_texts(random_ovms, best_of=3)
    assert post_texts(random_ovms, length_penalty=3, seed=1) == post_texts(random_ovms, seed=1)
    assert [
        record.getMessage() for record in caplog.records if record.name == "ouzel.wire.decode"
    ] == [
        "ignored fields: 'min_p', 'temperature', 'top_k', 'top_p'",
        "ignored fields: 'length_penalty'",
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"best_of": 2, "n": 3}, "best_of must be >= 3, the number of choices, given 2"),
        ({"best_of": 1, "n": 2}, "best_of must be >= 2, the number of choices, given 1"),
        ({"best_of": 0}, "best_of must be >= 1, given 0"),
        ({"best_of": 9}, "best_of must be <= 8 in a beam search, given 9"),
        ({"best_of": "many"}, 'best_of must be an integer, given "many"'),
        ({"best_of": True}, "best_of must be an integer, given true"),
        ({"best_of": 2, "temperature": 3}, "temperature must be <= 2.0, given 3"),
        ({"best_of": 2, "top_k": "many"}, 'top_k must be an integer, given "many"'),
        ({"length_penalty": 11}, "length_penalty must be <= 10.0, given 11"),
        ({"best_of": [2]}, "best_of must be an integer, given [2]"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_wrong_value_is_named_whether_it_would_be_read_or_not(
    random_ovms: httpx.Client, fields: Json, message: str, stream: bool
) -> None:
    response = random_ovms.post(COMPLETIONS, json=PROMPT | fields | {"stream": stream})
    assert response.status_code == 400
    assert message in response.json()["error"]


def test_the_largest_best_of_works(random_ovms: httpx.Client) -> None:
    assert len(post_texts(random_ovms, best_of=8, max_tokens=2)) == 1


def test_a_completion_without_a_limit_goes_on_to_the_end_of_the_context() -> None:
    body: Json = {"model": "parrot", "prompt": "abc"}
    with (
        running_server({"max_model_len": 64}, config=ServerConfig(profile="ovms")) as server,
        server.client() as http,
    ):
        unary = http.post(COMPLETIONS, json=body).json()
        streamed = read_events(http.post(COMPLETIONS, json=body | {"stream": True}))
        (limited,) = post_choices(http, COMPLETIONS, body | {"max_tokens": 2})
    assert unary["usage"]["completion_tokens"] == 61
    assert unary["choices"][0]["finish_reason"] == "length"
    assert (
        "".join(json.loads(event)["choices"][0]["text"] for event in streamed[:-1])
        == unary["choices"][0]["text"]
    )
    assert (limited["text"], limited["finish_reason"]) == ("ab", "length")


def test_logprobs_work_in_streams_too(ovms: httpx.Client) -> None:
    (choice,) = post_choices(ovms, CHAT, chat("Hi", logprobs=True))
    events = read_events(ovms.post(CHAT, json=chat("Hi", logprobs=True, stream=True)))[:-1]
    shown = [json.loads(event)["choices"][0]["logprobs"] for event in events]
    assert [entry for each in shown if each for entry in each["content"]] == choice["logprobs"][
        "content"
    ]


def test_the_default_profile_reads_them_as_openai_and_vllm_do(http: httpx.Client) -> None:
    asked = chat("Hello", stream=True, stop=["lo"])
    assert join_content(read_events(http.post(CHAT, json=asked))) == "Hel"
    assert "tool_calls" not in http.post(CHAT, json=chat("Hi")).json()["choices"][0]["message"]


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
@pytest.mark.parametrize("fields", [{}, {"content": None}, {"content": []}])
def test_a_message_may_have_no_content(
    http: httpx.Client, ovms: httpx.Client, role: str, fields: dict[str, object]
) -> None:
    body = chat("Hi") | {"messages": [{"role": role, **fields}, {"role": "user", "content": "Hi"}]}
    assert post_choices(ovms, CHAT, body)[0]["message"]["content"] == "Hi"
    ours = http.post(CHAT, json=body)
    assert ours.status_code == (200 if role == "assistant" and fields != {"content": []} else 400)


def test_template_arguments_take_precedence_over_an_effort(
    http: httpx.Client, ovms: httpx.Client
) -> None:
    body = chat("Hi", reasoning_effort="high", chat_template_kwargs={"enable_thinking": False})
    assert post_choices(ovms, CHAT, body)[0]["message"]["content"] == "Hi"
    assert http.post(CHAT, json=body).status_code == 400


def test_more_tokens_than_there_are_is_the_profiles_default_to_refuse() -> None:
    options = read_options({"profile": "ovms"}, {})
    assert options.limits.strict_max_tokens
    assert not read_options(
        {"profile": "ovms", "strict_max_tokens": False}, {}
    ).limits.strict_max_tokens
    assert not read_options({}, {}).limits.strict_max_tokens


def test_variables_that_the_template_does_not_read_have_no_effect_and_are_named(
    http: httpx.Client, ovms: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel.prompts")
    body = chat(
        "Hi",
        chat_template_kwargs={"enable_thinking": True, "colour": "red"},
        reasoning_effort="high",
    )
    assert post_choices(ovms, CHAT, body)[0]["message"]["content"] == "Hi"
    assert [record.getMessage() for record in caplog.records] == [
        "the chat template does not read 'chat_template_kwargs.enable_thinking', "
        "'chat_template_kwargs.colour'"
    ]
    for name in ("chat_template_kwargs", "reasoning_effort"):
        alone = chat("Hi", **{name: body[name]})
        assert post_choices(ovms, CHAT, alone)[0]["message"]["content"] == "Hi"
        assert http.post(CHAT, json=alone).status_code == 400


@pytest.mark.parametrize("name", ["messages", "tools"])
def test_a_variable_of_the_servers_own_is_refused(ovms: httpx.Client, name: str) -> None:
    response = ovms.post(CHAT, json=chat("Hi", chat_template_kwargs={name: "x"}))
    assert response.status_code == 400
    assert f"chat_template_kwargs.{name} must not be given" in response.json()["error"]


@pytest.mark.parametrize(
    "fields", [{}, {"best_of": 3}, {"use_beam_search": True, "n": 2}, {"num_beam_groups": 1}]
)
def test_a_lone_diversity_penalty_has_no_effect(
    random_ovms: httpx.Client, caplog: pytest.LogCaptureFixture, fields: Json
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel.wire.decode")
    asked = fields | {"seed": 1}
    assert post_texts(random_ovms, diversity_penalty=1.0, **asked) == post_texts(
        random_ovms, **asked
    )
    assert [record.getMessage() for record in caplog.records] == [
        "ignored fields: 'diversity_penalty'"
    ]


def test_a_diversity_penalty_keeps_groups_of_beams_apart(random_ovms: httpx.Client) -> None:
    asked: Json = {"best_of": 4, "n": 4, "num_beam_groups": 2}
    assert len(post_texts(random_ovms, diversity_penalty=1.0, **asked)) == 4
    assert random_ovms.post(COMPLETIONS, json=PROMPT | asked).status_code == 400


def test_a_lone_diversity_penalty_is_refused_without_the_profile(http: httpx.Client) -> None:
    assert http.post(COMPLETIONS, json=PROMPT | {"diversity_penalty": 1.0}).status_code == 400
