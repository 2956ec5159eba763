"""A completion can begin with its prompt, and a prompt can be scored alone."""

import json
from itertools import pairwise
from operator import itemgetter
from typing import Any  # JSON

import httpx
import openai
import pytest

from tests.api.requests import read_error, read_events

Json = dict[str, Any]
HALF_AN_N = [97, 195]  # "a" and the first byte of "ñ"


def complete(http: httpx.Client, **fields: object) -> list[Json]:
    response = http.post("/v1/completions", json={"model": "parrot", "max_tokens": 3, **fields})
    choices: list[Json] = response.raise_for_status().json()["choices"]
    return choices


def streamed(http: httpx.Client, **fields: object) -> list[Json]:
    """Posts a streamed request and folds its chunks into choices."""
    body = {"model": "parrot", "max_tokens": 3, "stream": True, **fields}
    choices: dict[int, Json] = {}
    for event in read_events(http.post("/v1/completions", json=body))[:-1]:
        (piece,) = json.loads(event)["choices"]
        if piece["index"] not in choices:
            choices[piece["index"]] = piece
        else:
            folded = choices[piece["index"]]
            folded["text"] += piece["text"]
            folded["finish_reason"] = piece["finish_reason"]
            for name, values in (piece["logprobs"] or {}).items():
                folded["logprobs"][name] += values
    nulls = {"stop_reason": None, "prompt_logprobs": None}  # absent in streams
    return [nulls | choices[index] for index in sorted(choices)]


@pytest.mark.parametrize("max_tokens", [0, 3])
@pytest.mark.parametrize("logprobs", [None, 0, 2])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("prompt", ["añb", ["añb", "xy"], [[*b"xy"], HALF_AN_N], ["a<|im_end|>b"]])
def test_a_folded_stream_is_the_unary_answer(
    http: httpx.Client, prompt: object, n: int, logprobs: int | None, max_tokens: int
) -> None:
    fields = {
        "prompt": prompt,
        "n": n,
        "logprobs": logprobs,
        "max_tokens": max_tokens,
        "echo": True,
    }
    assert streamed(http, **fields) == complete(http, **fields)


@pytest.mark.parametrize("prompt", ["abcd", [*b"abcd"]])
def test_the_prompt_stands_before_every_choice(http: httpx.Client, prompt: object) -> None:
    choices = complete(http, prompt=prompt, n=2, echo=True)
    assert [choice["text"] for choice in choices] == ["abcdabc", "abcdabc"]
    assert [choice["logprobs"] for choice in choices] == [None, None]
    assert [choice["text"] for choice in complete(http, prompt=prompt, echo=False)] == ["abc"]


def test_each_of_several_prompts_is_echoed_with_its_own_scores(http: httpx.Client) -> None:
    choices = complete(http, prompt=["ab", "xyz"], n=2, echo=True, logprobs=0, max_tokens=2)
    assert [choice["text"] for choice in choices] == ["abab", "abab", "xyzxy", "xyzxy"]
    assert ["".join(choice["logprobs"]["tokens"]) for choice in choices] == [
        choice["text"] for choice in choices
    ]


def test_logprobs_cover_prompt_and_completion(client: openai.OpenAI) -> None:
    answer = client.completions.create(
        model="parrot", prompt="abc", max_tokens=2, logprobs=2, echo=True
    )
    assert answer.choices[0].logprobs is not None
    logprobs = answer.choices[0].logprobs.model_dump()
    assert logprobs["tokens"] == ["a", "b", "c", "a", "b"]
    assert logprobs["token_logprobs"] == [None, 0.0, 0.0, 0.0, 0.0]
    assert logprobs["text_offset"] == [0, 1, 2, 3, 4]
    assert logprobs["top_logprobs"][:3] == [None, {"b": 0.0, "c": -99.0}, {"c": 0.0, "d": -99.0}]


def test_only_a_scored_prompt_has_no_completion(http: httpx.Client) -> None:
    response = http.post(
        "/v1/completions",
        json={"model": "parrot", "prompt": "abc", "max_tokens": 0, "logprobs": 1, "echo": True},
    ).json()
    (choice,) = response["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("abc", "length")
    assert choice["logprobs"]["token_logprobs"] == [None, 0.0, 0.0]
    assert response["usage"]["completion_tokens"] == 0
    assert response["usage"]["prompt_tokens"] == 3


def test_a_character_begun_in_the_prompt_is_shown_once(http: httpx.Client) -> None:
    (choice,) = complete(http, prompt=[177, 97, 195], max_tokens=2, logprobs=0, echo=True)
    assert choice["text"] == "\ufffdaña"
    (scored,) = complete(http, prompt=HALF_AN_N, max_tokens=0, echo=True)
    assert scored["text"] == "a\ufffd"


@pytest.mark.parametrize("prompt", ["añb<|im_end|>c", "🦉ñ"])
def test_offsets_point_into_the_text(http: httpx.Client, prompt: str) -> None:
    (choice,) = complete(
        http, prompt=prompt, max_tokens=20, logprobs=0, echo=True, skip_special_tokens=False
    )
    text, logprobs = choice["text"], choice["logprobs"]
    pieces = zip(logprobs["tokens"], logprobs["text_offset"], strict=True)
    assert all(text.startswith(token, offset) for token, offset in pieces if "\ufffd" not in token)
    assert all(before <= after for before, after in pairwise(logprobs["text_offset"]))


@pytest.mark.parametrize("is_stream", [False, True])
def test_prompt_logprobs_are_told_by_every_choice(http: httpx.Client, is_stream: bool) -> None:
    fields: Json = {
        "prompt": ["ab", "xyz"],
        "n": 2,
        "prompt_logprobs": 1,
        "echo": True,
        "logprobs": 2,
    }
    choices = streamed(http, **fields) if is_stream else complete(http, **fields)
    told = [
        [next(iter(each)) if each else None for each in choice["prompt_logprobs"]]
        for choice in choices
    ]
    assert told == [[None, "98"]] * 2 + [[None, "121", "122"]] * 2
    assert choices[0]["prompt_logprobs"][1] == {
        "98": {"logprob": 0.0, "rank": 1, "decoded_token": "b"}
    }
    assert choices[0]["logprobs"]["top_logprobs"][1] == {"b": 0.0, "c": -99.0}
    assert complete(http, prompt="ab", echo=True, logprobs=2)[0]["prompt_logprobs"] is None


@pytest.mark.parametrize("prompts", [["ab c", "xyz d"], [[*b"ab c"], [*b"xyz d"]]])
def test_an_evaluation_harness_reads_the_scores_of_a_continuation(
    http: httpx.Client, prompts: object
) -> None:
    """The test sends the request of lm-evaluation-harness (`local-completions`) and reads as it."""
    choices = complete(
        http, prompt=prompts, temperature=0, max_tokens=1, logprobs=1, seed=1234, echo=True
    )
    num_context_tokens = [2, 3]
    for choice, num_context in zip(
        sorted(choices, key=itemgetter("index")), num_context_tokens, strict=True
    ):
        token_logprobs = choice["logprobs"]["token_logprobs"][num_context:-1]
        top_logprobs = choice["logprobs"]["top_logprobs"][num_context:-1]
        assert len(token_logprobs) == len(" c")
        assert sum(token_logprobs) == 0.0
        assert [max(top.values()) for top in top_logprobs] == token_logprobs


@pytest.mark.parametrize("is_stream", [False, True])
def test_the_hidden_token_that_ends_a_completion_has_its_logprob(
    http: httpx.Client, is_stream: bool
) -> None:
    fields: Json = {"prompt": "a<|im_end|>", "logprobs": 1, "echo": True}
    (choice,) = streamed(http, **fields) if is_stream else complete(http, **fields)
    assert (choice["text"], choice["finish_reason"]) == ("a<|im_end|>a", "stop")
    assert choice["logprobs"]["tokens"] == ["a", "<|im_end|>", "a", "<|im_end|>"]
    assert choice["logprobs"]["text_offset"] == [0, 1, 11, 12]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 0, "echo": False}, "max_tokens"),
        ({"max_tokens": -2, "echo": True}, "max_tokens"),
        ({"echo": "yes"}, "echo"),
        ({"prompt_logprobs": 21}, "prompt_logprobs"),
        ({"echo": True, "logprobs": 21}, "logprobs"),
        ({"echo": True, "logprobs": True}, "logprobs"),
    ],
)
def test_a_wrong_field_is_named(http: httpx.Client, fields: Json, param: str) -> None:
    response = http.post("/v1/completions", json={"model": "parrot", "prompt": "a", **fields})
    assert response.status_code == 400
    assert read_error(response)["param"] == param
