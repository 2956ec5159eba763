"""Chats and completions share fields that choose the tokens to read and to show."""

import json

import httpx
import pytest

from tests.api.byte_tokens import END, START
from tests.api.requests import Json, chat, read_error, read_events

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
PROMPT_IDS = {
    CHAT: [START, *b"user\nab", END, *b"\n", START, *b"assistant\n"],
    COMPLETIONS: [*b"ab"],
}


def body_for(path: str, text: str = "ab", /, **fields: object) -> Json:
    return (
        chat(text, **fields)
        if path == CHAT
        else {"model": "parrot", "prompt": text, "max_tokens": 5, **fields}
    )


def unary(http: httpx.Client, path: str, body: Json) -> Json:
    answer: Json = http.post(path, json=body).raise_for_status().json()
    return answer


def streamed(http: httpx.Client, path: str, body: Json) -> list[Json]:
    return [
        json.loads(event)
        for event in read_events(http.post(path, json={**body, "stream": True}))[:-1]
    ]


@pytest.mark.parametrize(("path", "token_ids"), [(CHAT, [*b"ab", END]), (COMPLETIONS, [*b"ababa"])])
@pytest.mark.parametrize("n", [1, 2])
def test_token_ids_are_shown_when_asked_for(
    http: httpx.Client, path: str, token_ids: list[int], n: int
) -> None:
    body = body_for(path, return_token_ids=True, n=n)
    answer = unary(http, path, body)
    choices: list[Json] = answer["choices"]  # type: ignore[assignment]
    assert [choice["token_ids"] for choice in choices] == [token_ids] * n
    holders = [answer] if path == CHAT else choices
    assert [holder["prompt_token_ids"] for holder in holders] == [PROMPT_IDS[path]] * len(holders)


@pytest.mark.parametrize(("path", "token_ids"), [(CHAT, [*b"ab", END]), (COMPLETIONS, [*b"ababa"])])
@pytest.mark.parametrize("fields", [{}, {"stop": "\ufffd"}])
def test_streamed_token_ids_add_up(
    http: httpx.Client, path: str, token_ids: list[int], fields: dict[str, object]
) -> None:
    chunks = streamed(http, path, body_for(path, return_token_ids=True, n=2, **fields))
    choices: list[Json] = [chunk["choices"][0] for chunk in chunks]  # type: ignore[index]
    for index in (0, 1):
        own = [choice["token_ids"] for choice in choices if choice["index"] == index]
        joined = [token_id for piece in own for token_id in piece]  # type: ignore[attr-defined]
        assert joined == token_ids
    holders = [holder for holder in (*chunks, *choices) if "prompt_token_ids" in holder]
    assert [holder["prompt_token_ids"] for holder in holders] == [PROMPT_IDS[path]] * (
        1 if path == CHAT else 2
    )
    assert holders[0] in (chunks[0], choices[0])


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_token_ids_are_not_shown_unasked(http: httpx.Client, path: str) -> None:
    assert "token_ids" not in http.post(path, json=body_for(path)).text
    assert (
        "token_ids"
        not in http.post(path, json=body_for(path, stream=True, return_token_ids=False)).text
    )


def test_tokens_in_chat_logprobs_may_be_ids(http: httpx.Client) -> None:
    answer = unary(
        http, CHAT, chat("ñ", logprobs=True, top_logprobs=1, return_tokens_as_token_ids=True)
    )
    positions = answer["choices"][0]["logprobs"]["content"]  # type: ignore[index]
    assert [position["token"] for position in positions] == ["token_id:195", "token_id:177"]
    assert [position["top_logprobs"][0]["token"] for position in positions][:1] == ["token_id:195"]
    assert positions[0]["bytes"] == [195]


def test_tokens_in_completion_logprobs_may_be_ids(http: httpx.Client) -> None:
    body = {
        "model": "parrot",
        "prompt": "ñ",
        "max_tokens": 2,
        "logprobs": 1,
        "return_tokens_as_token_ids": True,
    }
    for answers in ([unary(http, COMPLETIONS, body)], streamed(http, COMPLETIONS, body)):
        choices = [answer["choices"][0] for answer in answers]  # type: ignore[index]
        logprobs = [choice["logprobs"] or {} for choice in choices]
        tops = [top for each in logprobs for top in each.get("top_logprobs", [])]
        assert [token for each in logprobs for token in each.get("tokens", [])] == [
            "token_id:195",
            "token_id:177",
        ]
        assert tops == [{"token_id:195": 0.0}, {"token_id:177": 0.0}]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"truncate_prompt_tokens": 2}, "de"),
        ({"truncate_prompt_tokens": 2, "truncation_side": "left"}, "de"),
        ({"truncate_prompt_tokens": 2, "truncation_side": "right"}, "ab"),
        ({"truncate_prompt_tokens": 10}, "abcde"),
        ({"truncate_prompt_tokens": 4096}, "abcde"),
        ({"truncate_prompt_tokens": -1}, "abcde"),
    ],
)
@pytest.mark.parametrize("prompt", ["abcde", [*b"abcde"]])
def test_a_prompt_is_cut(
    http: httpx.Client, prompt: object, fields: dict[str, object], text: str
) -> None:
    answer = unary(
        http, COMPLETIONS, {"model": "parrot", "prompt": prompt, "max_tokens": len(text), **fields}
    )
    assert answer["choices"][0]["text"] == text  # type: ignore[index]
    assert answer["usage"]["prompt_tokens"] == len(text)  # type: ignore[index]


@pytest.mark.parametrize(("max_tokens", "num_kept"), [(100, 3996), (16, 4096 - 16), (None, 4095)])
def test_minus_one_keeps_the_tokens_that_fit_beside_the_completion(
    http: httpx.Client, max_tokens: int | None, num_kept: int
) -> None:
    body = body_for(
        COMPLETIONS, "a" * 5000, max_tokens=max_tokens, truncate_prompt_tokens=-1, stop="aa"
    )
    usage = unary(http, COMPLETIONS, body)["usage"]
    assert usage["prompt_tokens"] == num_kept  # type: ignore[index]


def test_a_chat_is_cut_at_its_beginning(http: httpx.Client) -> None:
    messages = [{"role": "system", "content": "xyz"}, {"role": "user", "content": "ab"}]
    fields = {"messages": messages, "truncate_prompt_tokens": 24, "return_token_ids": True}
    answer = unary(http, CHAT, {"model": "parrot", **fields})
    assert answer["prompt_token_ids"] == [*b"z", END, *b"\n", *PROMPT_IDS[CHAT]]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
        ({"truncate_prompt_tokens": -2}, "truncate_prompt_tokens"),
        ({"truncate_prompt_tokens": 4097}, "truncate_prompt_tokens"),
        ({"truncate_prompt_tokens": 5, "truncation_side": "top"}, "truncation_side"),
        ({"truncation_side": "left"}, "truncation_side"),
        ({"return_token_ids": "some"}, "return_token_ids"),
    ],
)
def test_a_wrong_field_is_named(
    http: httpx.Client, path: str, fields: dict[str, object], param: str
) -> None:
    response = http.post(path, json=body_for(path, **fields))
    assert response.status_code == 400
    assert read_error(response)["param"] == param


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize(("includes", "text"), [(None, "a"), (False, "a"), (True, "abc")])
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_stop_string_is_shown_only_when_asked_for(
    http: httpx.Client, path: str, includes: bool | None, text: str, is_stream: bool
) -> None:
    body = body_for(path, "abcd", stop="bc", include_stop_str_in_output=includes)
    answers = streamed(http, path, body) if is_stream else [unary(http, path, body)]
    choices = [answer["choices"][0] for answer in answers]  # type: ignore[index]
    message = "delta" if is_stream else "message"
    pieces = [
        choice[message].get("content", "") if path == CHAT else choice["text"] for choice in choices
    ]
    assert "".join(pieces) == text
    assert (choices[-1]["finish_reason"], choices[-1]["stop_reason"]) == ("stop", "bc")


@pytest.mark.parametrize("is_stream", [False, True])
def test_special_tokens_are_shown_only_when_asked_for(http: httpx.Client, is_stream: bool) -> None:
    def text(skips: bool | None) -> str:
        body = body_for(
            COMPLETIONS, "a<|im_end|>b", max_tokens=3, ignore_eos=True, skip_special_tokens=skips
        )
        answers = (
            streamed(http, COMPLETIONS, body) if is_stream else [unary(http, COMPLETIONS, body)]
        )
        return "".join(answer["choices"][0]["text"] for answer in answers)  # type: ignore[index]

    assert [text(None), text(True), text(False)] == ["ab", "ab", "a<|im_end|>b"]
