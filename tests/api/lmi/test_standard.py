"""LMI's own schema has the fields inputs, parameters and stream."""

import json
import logging
from typing import Any  # JSON

import httpx
import pytest

from ouzel.api.lmi.standard import Parameters
from ouzel.config import LimitsConfig
from tests.api.byte_tokens import END
from tests.api.lmi.answers import PREFIX, read_lines, read_refusal
from tests.api.requests import Json
from tests.api.serving import running_server


def post_inputs(
    client: httpx.Client, inputs: object, *, stream: object = False, **parameters: object
) -> httpx.Response:
    return client.post(
        "/invocations", json={"inputs": inputs, "parameters": parameters, "stream": stream}
    )


def read_events(response: httpx.Response) -> list[Any]:
    """Returns the events of a stream; LMI's streams end without a [DONE]."""
    assert response.headers["content-type"].startswith("text/event-stream")
    frames = response.text.split("\n\n")
    assert frames.pop() == ""
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def token(byte: int, **more: object) -> Json:
    return {"id": byte, "text": chr(byte), "log_prob": 0.0, **more}


def test_a_text_is_answered_with_a_text(lmi: httpx.Client) -> None:
    assert lmi.post("/invocations", json={"inputs": "Hi"}).json() == {"generated_text": "Hi" * 15}
    assert post_inputs(lmi, "Hi", max_new_tokens=3).json() == {"generated_text": "HiH"}


def test_an_answer_has_details_on_request(lmi: httpx.Client) -> None:
    assert post_inputs(lmi, "Hi", max_new_tokens=3, details=True).json() == {
        "generated_text": "HiH",
        "details": {
            "finish_reason": "length",
            "generated_tokens": 3,
            "inputs": "Hi",
            "tokens": [token(72), token(105), token(72)],
        },
    }


def test_the_end_token_is_counted_and_listed(lmi: httpx.Client) -> None:
    details = post_inputs(lmi, "Hi<|im_end|>", details=True).json()["details"]
    assert (details["finish_reason"], details["generated_tokens"]) == ("eos_token", 3)
    assert details["tokens"][-1] == {"id": END, "text": "", "log_prob": 0.0, "special_token": True}


@pytest.mark.parametrize(
    ("parameters", "text", "finish_reason"),
    [
        ({"stop_sequences": ["lo"]}, "Hel", "stop_sequence"),
        ({"stop": "lo"}, "Hel", "stop_sequence"),
        ({"stop": ["x"], "stop_sequences": ["lo"]}, "Hel", "stop_sequence"),
        ({"stop_sequences": ["lo"], "include_stop_str_in_output": True}, "Hello", "stop_sequence"),
        ({"stop_token_ids": [ord("l")]}, "He", "stop_sequence"),
        ({}, "Hello", "eos_token"),
        ({"skip_special_tokens": False}, "Hello<|im_end|>", "eos_token"),
        ({"ignore_eos_token": True, "max_new_tokens": 8}, "HelloHe", "length"),
        (
            {"ignore_eos_token": True, "max_new_tokens": 6, "skip_special_tokens": False},
            "Hello<|im_end|>",
            "length",
        ),
        ({"max_new_tokens": 5}, "Hello", "length"),
        ({"return_full_text": True, "max_new_tokens": 2}, "Hello<|im_end|>He", "length"),
        ({"truncate": 3, "max_new_tokens": 2}, "lo", "length"),
        ({"truncate": 300, "max_new_tokens": 2}, "He", "length"),
    ],
)
def test_a_stream_is_the_unary_answer_token_by_token(
    lmi: httpx.Client, parameters: Json, text: str, finish_reason: str
) -> None:
    inputs = "Hello<|im_end|>"
    unary = post_inputs(lmi, inputs, details=True, top_n_tokens=2, **parameters).json()
    lines = read_lines(
        post_inputs(lmi, inputs, stream=True, details=True, top_n_tokens=2, **parameters)
    )
    details = unary["details"]
    assert (unary["generated_text"], details["finish_reason"]) == (text, finish_reason)
    assert [line["token"] for line in lines] == details["tokens"]
    assert [line["top_tokens"] for line in lines] == details["top_tokens"]
    assert len(lines) == details["generated_tokens"]
    assert all(line.keys() == {"token", "top_tokens"} for line in lines[:-1])
    assert lines[-1]["generated_text"] == text
    assert lines[-1]["details"] == {
        name: details[name] for name in ("finish_reason", "generated_tokens", "inputs")
    }
    prompt = inputs if parameters.get("return_full_text") else ""
    assert prompt + "".join(line["token"]["text"] for line in lines) == text


@pytest.mark.parametrize("text", ["wörld 🦉 ok", "🦉", "ö"])
@pytest.mark.parametrize("max_new_tokens", range(1, 8))
def test_the_texts_of_the_tokens_add_up_to_the_text(
    lmi: httpx.Client, text: str, max_new_tokens: int
) -> None:
    lines = read_lines(post_inputs(lmi, text, stream=True, max_new_tokens=max_new_tokens))
    assert "".join(line["token"]["text"] for line in lines) == lines[-1]["generated_text"]
    assert len(lines) == max_new_tokens
    assert (
        lines[-1]["generated_text"]
        == post_inputs(lmi, text, max_new_tokens=max_new_tokens).json()["generated_text"]
    )


def test_the_last_line_has_details_only_where_they_are_asked_for(lmi: httpx.Client) -> None:
    assert read_lines(post_inputs(lmi, "Hi", stream=True, max_new_tokens=2)) == [
        {"token": token(72)},
        {"token": token(105), "generated_text": "Hi"},
    ]


def test_top_n_tokens(lmi: httpx.Client) -> None:
    details = post_inputs(lmi, "Hi", max_new_tokens=1, details=True, top_n_tokens=2).json()[
        "details"
    ]
    assert details["top_tokens"] == [[token(72), token(73, log_prob=-99.0)]]


def test_the_prompt_and_its_logprobs(lmi: httpx.Client) -> None:
    prefill = [token(72, log_prob=None), token(105)]
    asked: Json = {"max_new_tokens": 1, "details": True, "decoder_input_details": True}
    assert post_inputs(lmi, "Hi", **asked).json()["details"]["prefill"] == prefill
    assert (
        read_lines(post_inputs(lmi, "Hi", stream=True, **asked))[-1]["details"]["prefill"]
        == prefill
    )
    answers = post_inputs(lmi, ["Hi", "i"], n=2, **asked).json()
    assert [answer["details"]["prefill"] for answer in answers] == [
        prefill,
        [token(105, log_prob=None)],
    ]


def test_a_list_of_inputs_is_answered_with_a_list(lmi: httpx.Client) -> None:
    answers = post_inputs(lmi, ["abc", "de", "f"], max_new_tokens=4, details=True).json()
    assert [answer["generated_text"] for answer in answers] == ["abca", "dede", "ffff"]
    assert [answer["details"]["inputs"] for answer in answers] == ["abc", "de", "f"]
    assert post_inputs(lmi, ["abc"], max_new_tokens=1).json() == [{"generated_text": "a"}]


@pytest.mark.parametrize("name", ["n", "best_of"])
def test_several_sequences_are_the_best_and_the_others(lmi: httpx.Client, name: str) -> None:
    parameters: Json = {name: 3, "max_new_tokens": 2, "return_full_text": True}
    answer = post_inputs(lmi, "Hi", **parameters).json()
    sequence = {"finish_reason": "length", "generated_tokens": 2, "tokens": [token(72), token(105)]}
    assert answer == {
        "generated_text": "HiHi",
        "details": sequence
        | {"inputs": "Hi", "best_of_sequences": [sequence | {"generated_text": "HiHi"}] * 2},
    }
    batch = post_inputs(lmi, ["Hi", "Ho"], **parameters).json()
    assert [each["generated_text"] for each in batch] == ["HiHi", "HoHo"]
    assert [len(each["details"]["best_of_sequences"]) for each in batch] == [2, 2]


def test_a_stream_has_the_best_of_several(lmi: httpx.Client) -> None:
    lines = read_lines(
        post_inputs(lmi, "Hi", stream=True, best_of=3, max_new_tokens=2, details=True)
    )
    assert [line["token"]["text"] for line in lines] == ["H", "i"]
    assert lines[-1]["details"]["generated_tokens"] == 2


def test_events_on_demand(lmi: httpx.Client) -> None:
    expected = [{"token": token(72)}, {"token": token(105), "generated_text": "Hi"}]
    body = {"inputs": "Hi", "parameters": {"max_new_tokens": 2}, "stream": True}
    assert (
        read_events(lmi.post("/invocations", json=body, headers={"accept": "text/event-stream"}))
        == expected
    )
    assert (
        read_events(post_inputs(lmi, "Hi", stream=True, max_new_tokens=2, output_formatter="sse"))
        == expected
    )
    assert (
        read_lines(
            post_inputs(lmi, "Hi", stream=True, max_new_tokens=2, output_formatter="jsonlines")
        )
        == expected
    )
    assert post_inputs(lmi, "Hi", max_new_tokens=2, output_formatter="json").json() == {
        "generated_text": "Hi"
    }


def test_stream_may_stand_among_the_parameters(lmi: httpx.Client) -> None:
    body: Json = {"inputs": "Hi", "parameters": {"max_new_tokens": 1, "stream": True}}
    assert len(read_lines(lmi.post("/invocations", json=body))) == 1
    assert lmi.post("/invocations", json=body | {"stream": False}).json() == {"generated_text": "H"}


def test_tgi_compatibility(tgi: httpx.Client) -> None:
    tokens = [
        {"id": 72, "text": "H", "logprob": 0.0, "special": False},
        {"id": 105, "text": "i", "logprob": 0.0, "special": False},
    ]
    end: Json = {"finish_reason": "length", "generated_tokens": 2, "inputs": "Hi"}
    assert post_inputs(tgi, "Hi", max_new_tokens=2).json() == [
        {"generated_text": "Hi", "details": end | {"tokens": tokens}}
    ]
    assert post_inputs(tgi, "Hi", max_new_tokens=2, details=False).json() == [
        {"generated_text": "Hi"}
    ]
    assert read_events(post_inputs(tgi, "Hi", stream=True, max_new_tokens=2)) == [
        {"token": tokens[0]},
        {"token": tokens[1], "generated_text": "Hi", "details": end | {"input_length": 2}},
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"inputs": ""}, 'inputs must have a length >= 1, given ""'),
        ({"inputs": []}, "inputs must have a length >= 1, given []"),
        ({"inputs": ["a", ""]}, 'inputs[1] must have a length >= 1, given ""'),
        ({"inputs": 5}, "inputs must be a string or a list, given 5"),
        ({"parameters": [1]}, "parameters must be an object, given [1]"),
        ({"stream": "maybe"}, 'stream must be true or false, given "maybe"'),
        ({"adapters": "mine"}, "Adapter mine is not registered"),
        ({"adapters": ["mine"]}, "Adapter mine is not registered"),
        (
            {"adapters": ["", ""]},
            "Number of adapters is not equal to the number of inputs, given 2 and 1",
        ),
        ({"adapters": 5}, "adapters must be a string or a list of strings, given 5"),
        ({"adapters": [5]}, "adapters must be a string or a list of strings, given [5]"),
        ({"cached_prompt": "x"}, "cached_prompt is not supported"),
        (
            {"inputs": ["a", "b"], "stream": True},
            "inputs must be a string when stream is true, given a list",
        ),
        ({"inputs": ["a"] * 1000}, "inputs must have <= "),
    ],
)
def test_a_wrong_field_is_named(lmi: httpx.Client, body: Json, message: str) -> None:
    assert read_refusal(lmi.post("/invocations", json={"inputs": "Hi"} | body)).startswith(
        PREFIX + message
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens must be >= 1, given 0"),
        ({"temperature": 3}, "temperature must be <= 2.0, given 3"),
        ({"top_k": "many"}, 'top_k must be an integer, given "many"'),
        ({"do_sample": 1}, "do_sample must be true or false, given 1"),
        ({"stop_sequences": [""]}, 'stop_sequences[0] must have a length >= 1, given ""'),
        ({"truncate": 0}, "truncate must be >= 1, given 0"),
        ({"top_n_tokens": 21, "details": True}, "top_n_tokens must be <= 20, given 21"),
        ({"top_n_tokens": 2}, "top_n_tokens needs details to be true, given 2"),
        ({"logprobs": -1}, "logprobs must be >= 0, given -1"),
        ({"prompt_logprobs": "x"}, 'prompt_logprobs must be an integer, given "x"'),
        (
            {"output_formatter": "sse"},
            'output_formatter must be json when stream is false, given "sse"',
        ),
        (
            {"output_formatter": "3p"},
            'output_formatter must be json when stream is false, given "3p"',
        ),
        ({"bad_sequences": [""]}, "bad_sequences[0] must have a length >= 1"),
        (
            {"decoder_input_details": True},
            "decoder_input_details needs details to be true, given true",
        ),
        (
            {"return_token_ids": True},
            "return_token_ids is not a parameter of this schema (use details), given true",
        ),
        ({"min_length": -1}, "min_length must be >= 0, given -1"),
        ({"min_length": 5, "max_new_tokens": 4}, "min_length must be <= 4, given 5"),
        ({"min_tokens": 5, "max_new_tokens": 4}, "min_tokens must be <= 4, given 5"),
        ({"watermark": True}, "watermark is not supported"),
        ({"grammar": {"type": "xml", "value": {}}}, "grammar.type must be"),
        ({"adapter_id": "mine"}, "Adapter mine is not registered"),
        ({"adapter_id": 5}, "adapter_id must be a string, given 5"),
        ({"stream": True, "n": 2}, "n must be 1 when stream is true, given 2"),
        ({"best_of": -1}, "best_of must be >= 1, given -1"),
        ({"num_beams": 3, "temperature": 1}, "temperature must be 0 in a beam search, given 1"),
        (
            {"stream": True, "output_formatter": "json"},
            "output_formatter must be jsonlines or sse when stream is true",
        ),
    ],
)
def test_a_wrong_parameter_is_named(lmi: httpx.Client, parameters: Json, message: str) -> None:
    body = {"inputs": "Hi", "parameters": parameters}
    assert read_refusal(lmi.post("/invocations", json=body)).startswith(PREFIX + message)


def test_values_that_ask_for_nothing_are_taken(lmi: httpx.Client) -> None:
    nothing: Json = {
        "watermark": False,
        "bad_sequences": [],
        "min_length": 1,
        "adapter_id": None,
        "grammar": None,
    }
    assert post_inputs(lmi, "Hi", max_new_tokens=2, **nothing).json() == {"generated_text": "Hi"}


def test_min_length_keeps_the_output_from_ending(lmi: httpx.Client) -> None:
    """A stop string does not end an output that is still shorter than the minimum."""
    assert post_inputs(lmi, "Hi", max_new_tokens=6, stop=["i"]).json() == {"generated_text": "H"}
    for name in ("min_length", "min_tokens"):
        assert post_inputs(lmi, "Hi", max_new_tokens=6, stop=["i"], **{name: 3}).json() == {
            "generated_text": "HiH"
        }
    assert post_inputs(
        lmi, "Hi", max_new_tokens=6, stop=["i"], min_length=3, min_tokens=3
    ).json() == {"generated_text": "HiH"}


def test_logprobs_of_vllms_names_change_nothing(lmi: httpx.Client) -> None:
    shown: Json = {"max_new_tokens": 2, "details": True, "decoder_input_details": True}
    assert (
        post_inputs(lmi, "Hi", logprobs=5, prompt_logprobs=1, **shown).json()
        == post_inputs(lmi, "Hi", **shown).json()
    )
    plain = post_inputs(lmi, "Hi", max_new_tokens=2, logprobs=5, prompt_logprobs=1).json()
    assert plain == {"generated_text": "Hi"}


def test_unknown_parameters_are_ignored_in_one_line(
    lmi: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    assert post_inputs(lmi, "Hi", max_new_tokens=2, zeal=1).json() == {"generated_text": "Hi"}
    assert [
        record.getMessage() for record in caplog.records if record.name == "ouzel.wire.decode"
    ] == ["ignored fields: 'zeal'"]


def test_a_batch_takes_its_places(lmi: httpx.Client) -> None:
    with running_server({"max_num_seqs": 1}, LimitsConfig(max_queued_requests=1)) as server:
        response = httpx.post(
            f"{server.url}/invocations", json={"inputs": ["a", "b", "c"]}, timeout=None
        )
    assert (
        read_refusal(response)
        == f"{PREFIX}inputs must have <= 2 entries of 1 sequences each, given 3"
    )


STRANGE: list[object] = [
    True,
    False,
    0,
    -1,
    1.5,
    1e308,
    2**64,
    "",
    "a",
    "1",
    [],
    [1],
    ["a"],
    [None],
    {},
    {"1": 1},
]


@pytest.mark.parametrize("name", Parameters.__struct_fields__)
def test_no_value_of_a_parameter_is_a_fault_of_ours(lmi: httpx.Client, name: str) -> None:
    for value in STRANGE:
        response = post_inputs(lmi, "Hi", **{"max_new_tokens": 2, name: value})
        assert response.status_code == 200 or read_refusal(response).startswith(PREFIX)
    assert post_inputs(lmi, "Hi", **{"max_new_tokens": 2, name: None}).status_code == 200
