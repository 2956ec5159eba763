"""Completions: one prompt goes on."""

import httpx
import openai
import pytest

from tests.api.requests import error_of


@pytest.mark.parametrize("prompt", ["añb", ["añb"], list("añb".encode()), [list("añb".encode())]])
def test_a_prompt_is_a_text_or_token_ids(http: httpx.Client, prompt: object) -> None:
    answer = http.post("/v1/completions", json={"model": "parrot", "prompt": prompt, "max_tokens": 7}).json()
    assert answer["object"] == "text_completion"
    assert answer["choices"] == [{"index": 0, "text": "añbañ", "logprobs": None, "finish_reason": "length"}]
    assert answer["usage"]["prompt_tokens"] == 4


def test_a_folded_stream_is_the_unary_answer(client: openai.OpenAI) -> None:
    unary = client.completions.create(model="parrot", prompt="añb", max_tokens=9, n=2, logprobs=2)
    chunks = list(
        client.completions.create(
            model="parrot",
            prompt="añb",
            max_tokens=9,
            n=2,
            logprobs=2,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert chunks[-1].usage == unary.usage
    for expected in unary.choices:
        own = [choice for chunk in chunks for choice in chunk.choices if choice.index == expected.index]
        assert "".join(choice.text for choice in own) == expected.text
        assert own[-1].finish_reason == expected.finish_reason == "length"
        offsets = [offset for choice in own if choice.logprobs for offset in choice.logprobs.text_offset or []]
        assert expected.logprobs is not None
        assert offsets == expected.logprobs.text_offset


@pytest.mark.parametrize(("skips", "last_offset"), [(True, 1), (False, 1 + len("<|im_end|>"))])
def test_offsets_count_the_characters_that_the_text_shows(http: httpx.Client, skips: bool, last_offset: int) -> None:
    def offsets(prompt: str, max_tokens: int) -> list[int]:
        fields = {"max_tokens": max_tokens, "logprobs": 0, "ignore_eos": True, "skip_special_tokens": skips}
        answer = http.post("/v1/completions", json={"model": "parrot", "prompt": prompt, **fields}).json()
        shown: list[int] = answer["choices"][0]["logprobs"]["text_offset"]
        return shown

    assert offsets("añb", 4) == [0, 1, 1, 2]
    assert offsets("a<|im_end|>b", 3) == [0, 1, last_offset]


def test_without_a_limit_it_is_that_of_openai(http: httpx.Client) -> None:
    answer = http.post("/v1/completions", json={"model": "parrot", "prompt": "abc"}).json()
    assert answer["usage"]["completion_tokens"] == 16


def test_logprobs_are_lists_of_equal_length(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="parrot", prompt="abc", max_tokens=3, logprobs=2)
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.tokens == ["a", "b", "c"]
    assert logprobs.token_logprobs == [0.0, 0.0, 0.0]
    assert logprobs.text_offset == [0, 1, 2]
    assert logprobs.top_logprobs is not None
    assert logprobs.top_logprobs[0] == {"a": 0.0, "b": -99.0}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": []}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": [1, "a"]}, "prompt"),
        ({"prompt": [260]}, "prompt[0]"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": [["a"]]}, "prompt"),
        ({"prompt": [[[97]]]}, "prompt"),
        ({"prompt": {"text": "a"}}, "prompt"),
        ({"prompt": "a", "echo": True}, "echo"),
        ({"prompt": "a", "suffix": "z"}, "suffix"),
        ({"prompt": "a", "logprobs": 21}, "logprobs"),
        ({"prompt": "a", "max_tokens": 4096}, "max_tokens"),
        ({}, "prompt"),
    ],
)
def test_a_wrong_field_is_named(http: httpx.Client, fields: dict[str, object], param: str) -> None:
    response = http.post("/v1/completions", json={"model": "parrot", **fields})
    assert response.status_code == 400
    assert error_of(response)["param"] == param
