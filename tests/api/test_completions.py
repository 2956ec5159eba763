"""Completions go on from their prompts."""

import json
from collections.abc import Iterator

import httpx
import openai
import pytest

from ouzel.config import LimitsConfig
from tests.api.byte_tokens import byte_tokenizer
from tests.api.requests import read_error, read_events, wait_until
from tests.api.serving import running_server
from tests.api.test_streams import FOREVER, num_running, send_raw


@pytest.mark.parametrize("prompt", ["añb", ["añb"], list("añb".encode()), [list("añb".encode())]])
def test_a_prompt_is_a_text_or_token_ids(http: httpx.Client, prompt: object) -> None:
    answer = http.post(
        "/v1/completions", json={"model": "parrot", "prompt": prompt, "max_tokens": 7}
    ).json()
    assert answer["object"] == "text_completion"
    nulls = {"logprobs": None, "stop_reason": None, "prompt_logprobs": None}
    assert answer["choices"] == [{"index": 0, "text": "añbañ", "finish_reason": "length", **nulls}]
    assert answer["usage"]["prompt_tokens"] == 4


@pytest.mark.parametrize("prompt", ["añb", ["añb", "xy", "z"], [list("añb".encode()), [120, 121]]])
def test_a_folded_stream_is_the_unary_answer(
    client: openai.OpenAI, prompt: str | list[str] | list[list[int]]
) -> None:
    unary = client.completions.create(model="parrot", prompt=prompt, max_tokens=9, n=2, logprobs=2)
    chunks = list(
        client.completions.create(
            model="parrot",
            prompt=prompt,
            max_tokens=9,
            n=2,
            logprobs=2,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert chunks[-1].usage == unary.usage
    for expected in unary.choices:
        own = [
            choice for chunk in chunks for choice in chunk.choices if choice.index == expected.index
        ]
        assert "".join(choice.text for choice in own) == expected.text
        assert own[-1].finish_reason == expected.finish_reason == "length"
        offsets = [
            offset
            for choice in own
            if choice.logprobs
            for offset in choice.logprobs.text_offset or []
        ]
        assert expected.logprobs is not None
        assert offsets == expected.logprobs.text_offset


@pytest.mark.parametrize("prompt", [["ab", "xyz"], [[97, 98], [120, 121, 122]]])
def test_choices_are_ordered_by_prompt(http: httpx.Client, prompt: object) -> None:
    answer = http.post(
        "/v1/completions", json={"model": "parrot", "prompt": prompt, "max_tokens": 4, "n": 2}
    ).json()
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert [choice["text"] for choice in answer["choices"]] == ["abab", "abab", "xyzx", "xyzx"]
    assert answer["usage"]["prompt_tokens"] == 5
    assert answer["usage"]["completion_tokens"] == 16


def test_more_prompts_than_are_allowed_are_told_the_limit(http: httpx.Client) -> None:
    response = http.post("/v1/completions", json={"model": "parrot", "prompt": ["a"] * 1000})
    assert response.status_code == 400
    message = (
        "prompt must have <= 256 entries when n is 1, given 1000; send them in several requests"
    )
    assert read_error(response)["message"] == message


def test_every_prompt_needs_a_place() -> None:
    limits = LimitsConfig(max_queued_requests=1)
    with running_server(
        {"step_s": 0.001, "max_num_seqs": 1, "max_model_len": 20_000}, limits
    ) as server:

        def complete(prompt: list[str]) -> httpx.Response:
            return httpx.post(
                f"{server.url}/v1/completions", json={"model": "parrot", "prompt": prompt}
            )

        # three prompts never fit into the server's queue
        assert read_error(complete(["a", "b", "c"]))["param"] == "prompt"
        assert complete(["a", "b"]).status_code == 200
        with send_raw(server, FOREVER):
            wait_until(lambda: num_running(server) == 1)
            assert complete(["a"]).status_code == 200
            assert complete(["a", "b"]).status_code == 429
        wait_until(lambda: server.engine.num_unfinished == 0)


def test_a_disconnect_aborts_every_prompt() -> None:
    with running_server({"step_s": 0.001, "max_model_len": 20_000}) as server:
        with send_raw(server, {**FOREVER, "prompt": ["abc", "d", "e"], "n": 2}):
            wait_until(lambda: num_running(server) == 6)
        wait_until(lambda: num_running(server) == 0 and server.engine.num_unfinished == 0)


def test_a_failing_prompt_fails_the_request(http: httpx.Client) -> None:
    response = http.post(
        "/v1/completions", json={"model": "parrot", "prompt": ["ab", "a<|fail|>"], "max_tokens": 90}
    )
    assert response.status_code == 500
    assert read_error(response)["code"] == "engine_failed"


@pytest.mark.parametrize(("skips", "last_offset"), [(True, 1), (False, 1 + len("<|im_end|>"))])
def test_offsets_count_the_characters_that_the_text_shows(
    http: httpx.Client, skips: bool, last_offset: int
) -> None:
    def offsets(prompt: str, max_tokens: int) -> list[int]:
        fields = {
            "max_tokens": max_tokens,
            "logprobs": 0,
            "ignore_eos": True,
            "skip_special_tokens": skips,
        }
        answer = http.post(
            "/v1/completions", json={"model": "parrot", "prompt": prompt, **fields}
        ).json()
        shown: list[int] = answer["choices"][0]["logprobs"]["text_offset"]
        return shown

    assert offsets("añb", 4) == [0, 1, 1, 2]
    assert offsets("a<|im_end|>b", 3) == [0, 1, last_offset]


def test_without_a_limit_openais_limit_applies(http: httpx.Client) -> None:
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


@pytest.mark.parametrize("max_tokens", [0, 2])
@pytest.mark.parametrize("is_stream", [False, True])
def test_every_choice_has_the_logprobs_of_its_own_prompt(
    http: httpx.Client, is_stream: bool, max_tokens: int
) -> None:
    body = {
        "model": "parrot",
        "prompt": ["abc", "d"],
        "n": 2,
        "max_tokens": max_tokens,
        "prompt_logprobs": 0,
    }
    response = http.post("/v1/completions", json={**body, "stream": is_stream})
    answers = (
        [json.loads(event) for event in read_events(response)[:-1]]
        if is_stream
        else [response.json()]
    )
    choices = [choice for answer in answers for choice in answer["choices"]]

    shown = {
        choice["index"]: choice.pop("prompt_logprobs")
        for choice in choices
        if "prompt_logprobs" in choice
    }
    of_abc = [
        None,
        {"98": {"logprob": 0.0, "rank": 1, "decoded_token": "b"}},
        {"99": {"logprob": 0.0, "rank": 1, "decoded_token": "c"}},
    ]
    assert shown == {0: of_abc, 1: of_abc, 2: [None], 3: [None]}
    assert (
        "".join(choice["text"] for choice in choices if choice["index"] == 0) == "abc"[:max_tokens]
    )


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": []}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": [1, "a"]}, "prompt"),
        ({"prompt": [260]}, "prompt[0]"),
        ({"prompt": ["a"] * 257}, "prompt"),
        ({"prompt": ["a"] * 65, "n": 4}, "prompt"),
        ({"prompt": ["a", "b", ""]}, "prompt[2]"),
        ({"prompt": ["a", "b", [97]]}, "prompt[2]"),
        ({"prompt": ["a", 97]}, "prompt[1]"),
        ({"prompt": [[97], "a"]}, "prompt[1]"),
        ({"prompt": [[97], []]}, "prompt[1]"),
        ({"prompt": [[97], [97, 98, 260]]}, "prompt[1][2]"),
        ({"prompt": [[97], [97, True]]}, "prompt[1]"),
        ({"prompt": [["a"]]}, "prompt[0]"),
        ({"prompt": [[[97]]]}, "prompt[0]"),
        ({"prompt": {"text": "a"}}, "prompt"),
        ({"prompt": "a", "suffix": "z"}, "suffix"),
        ({"prompt": "a", "suffix": 1}, "suffix"),
        ({"prompt": "a", "suffix": "z", "echo": True}, "echo"),
        ({"prompt": "a", "suffix": "z", "truncate_prompt_tokens": 2}, "truncate_prompt_tokens"),
        ({"prompt": "a", "logprobs": 21}, "logprobs"),
        ({"prompt": "a", "prompt_logprobs": 21}, "prompt_logprobs"),
        ({"prompt": "a", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "a", "max_tokens": -2}, "max_tokens"),
        ({}, "prompt"),
    ],
)
def test_a_wrong_field_is_named(http: httpx.Client, fields: dict[str, object], param: str) -> None:
    response = http.post("/v1/completions", json={"model": "parrot", **fields})
    assert response.status_code == 400
    assert read_error(response)["param"] == param


@pytest.fixture(scope="module")
def coder() -> Iterator[httpx.Client]:
    """Yields a client of a model whose tokenizer has StarCoder's tokens."""
    tokens = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>")
    tokenizer = byte_tokenizer(*tokens)
    with running_server(tokenizer=tokenizer) as server, server.client() as http:
        yield http


@pytest.mark.parametrize("prompt", ["ab", [[97, 98]], ["ab", "ab"]])
def test_a_suffix_asks_for_the_middle(coder: httpx.Client, prompt: object) -> None:
    body = {
        "model": "parrot",
        "prompt": prompt,
        "suffix": "yz",
        "max_tokens": 6,
        "return_token_ids": True,
    }
    choices = coder.post("/v1/completions", json={**body, "ignore_eos": True}).json()["choices"]
    for choice in choices:
        assert choice["prompt_token_ids"] == [260, *b"ab", 261, *b"yz", 262]
        assert choice["text"] == "abyz"


def test_a_middle_ends_where_the_model_begins_something_else(coder: httpx.Client) -> None:
    body = {"model": "parrot", "suffix": "yz", "max_tokens": 9}
    (choice,) = coder.post("/v1/completions", json={**body, "prompt": "ab"}).json()["choices"]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("", "stop", None)


def test_an_empty_suffix_is_no_suffix(coder: httpx.Client) -> None:
    (choice,) = coder.post(
        "/v1/completions", json={"model": "parrot", "prompt": "ab", "suffix": "", "max_tokens": 4}
    ).json()["choices"]
    assert choice["text"] == "abab"
