"""The official client reads chat completions."""

import json

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionChunk, ChatCompletionUserMessageParam

from tests.api.requests import chat, join_content, read_events
from tests.api.server_setup import MODEL

HELLO: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "Hello, wörld 🦉"}]


def stream(client: openai.OpenAI, **fields: object) -> list[ChatCompletionChunk]:
    arguments = {"model": "parrot", "messages": HELLO, "stream": True, **fields}
    return list(client.chat.completions.create(**arguments))  # type: ignore[call-overload]


def test_an_answer_has_everything_that_clients_read(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="parrot", messages=HELLO)
    assert answer.id.startswith("chatcmpl-")
    assert answer.object == "chat.completion"
    assert answer.model == MODEL
    assert answer.created > 1_700_000_000
    assert answer.system_fingerprint is not None and answer.system_fingerprint.startswith("fp_")
    (choice,) = answer.choices
    assert (choice.index, choice.finish_reason, choice.logprobs) == (0, "stop", None)
    assert (choice.message.role, choice.message.content) == ("assistant", "Hello, wörld 🦉")
    assert choice.message.tool_calls is None


def test_usage_counts_the_end_token_and_names_the_details(client: openai.OpenAI) -> None:
    usage = client.chat.completions.create(model="parrot", messages=HELLO).usage
    assert usage is not None
    assert usage.completion_tokens == len("Hello, wörld 🦉".encode()) + 1
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert (
        usage.prompt_tokens_details is not None and usage.prompt_tokens_details.cached_tokens == 0
    )
    assert (
        usage.completion_tokens_details is not None
        and usage.completion_tokens_details.reasoning_tokens == 0
    )


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize(
    "fields", [{}, {"max_tokens": 9}, {"stop": ["rl", "world"]}, {"stop": "ö"}]
)
def test_a_folded_stream_is_the_unary_answer(
    client: openai.OpenAI, n: int, fields: dict[str, object]
) -> None:
    unary = client.chat.completions.create(  # type: ignore[call-overload]
        model="parrot", messages=HELLO, n=n, **fields
    )
    chunks = stream(client, n=n, stream_options={"include_usage": True}, **fields)
    choices = [chunk.choices[0] for chunk in chunks[:-1]]
    for expected in unary.choices:
        own = [choice for choice in choices if choice.index == expected.index]
        assert own[0].delta.role == "assistant"
        assert all(choice.delta.role is None for choice in own[1:])
        assert "".join(choice.delta.content or "" for choice in own) == expected.message.content
        assert [choice.finish_reason for choice in own if choice.finish_reason] == [
            expected.finish_reason
        ]
        assert own[-1].finish_reason is not None
    assert chunks[-1].choices == []
    assert chunks[-1].usage == unary.usage
    assert len({chunk.id for chunk in chunks}) == 1
    assert len({chunk.created for chunk in chunks}) == 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert {chunk.system_fingerprint for chunk in chunks} == {unary.system_fingerprint}


def test_usage_is_null_in_chunks_only_when_asked_for(http: httpx.Client) -> None:
    without = read_events(http.post("/v1/chat/completions", json=chat("Hi", stream=True)))
    asked = chat("Hi", stream=True, stream_options={"include_usage": True})
    with_usage = read_events(http.post("/v1/chat/completions", json=asked))
    assert not any('"usage"' in event for event in without)
    assert all('"usage":null' in event for event in with_usage[:-2])
    assert '"choices":[]' in with_usage[-2]
    assert without[-1] == with_usage[-1] == "[DONE]"


def test_continuous_usage_grows_to_the_final_one(client: openai.OpenAI) -> None:
    chunks = stream(client, stream_options={"include_usage": True, "continuous_usage_stats": True})
    counts = [chunk.usage.completion_tokens for chunk in chunks if chunk.usage is not None]
    assert len(counts) == len(chunks)
    assert counts == sorted(counts)
    assert counts[-1] == len("Hello, wörld 🦉".encode()) + 1


def test_the_length_limit_ends_with_length(client: openai.OpenAI) -> None:
    for field in ("max_tokens", "max_completion_tokens"):
        answer = client.chat.completions.create(  # type: ignore[call-overload]
            model="parrot", messages=HELLO, **{field: 5}
        )
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == (
            "Hello",
            "length",
        )
        assert answer.usage.completion_tokens == 5


def test_half_a_character_at_the_limit_is_shown_as_such(client: openai.OpenAI) -> None:
    cut = len(b"Hello, w") + 1
    answer = client.chat.completions.create(model="parrot", messages=HELLO, max_tokens=cut)
    assert answer.choices[0].message.content == "Hello, w\ufffd"


def test_a_stop_string_is_hidden_and_later_tokens_are_not_counted(http: httpx.Client) -> None:
    answer = http.post(
        "/v1/chat/completions", json=chat("one two three", stop=["zzz", "two"])
    ).json()
    assert answer["choices"][0]["message"]["content"] == "one "
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["stop_reason"] == "two"
    assert answer["usage"]["completion_tokens"] == len("one two")


def test_a_stop_string_counts_only_beyond_min_tokens(http: httpx.Client) -> None:
    body = chat("a-b-c-d", stop="-", min_tokens=3)
    answer = http.post("/v1/chat/completions", json=body).json()

    assert answer["choices"][0]["message"]["content"] == "a-b"
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_a_stop_string_can_be_shown(http: httpx.Client) -> None:
    body = chat("one two three", stop="two", include_stop_str_in_output=True)
    assert (
        http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
        == "one two"
    )
    assert (
        join_content(read_events(http.post("/v1/chat/completions", json={**body, "stream": True})))
        == "one two"
    )


def test_a_frame_is_one_line_for_clients_that_know_all_line_ends(http: httpx.Client) -> None:
    said = "a\x0b\x0c\x1c\x85b\u2028c\u2029d\n"
    response = http.post("/v1/chat/completions", json=chat(said, stream=True))
    lines = [line for line in response.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    assert join_content([line.removeprefix("data: ") for line in lines]) == said


def test_a_stop_token_ends_without_text_of_its_own(http: httpx.Client) -> None:
    answer = http.post(
        "/v1/chat/completions", json=chat("one two", stop_token_ids=[ord("w")])
    ).json()
    assert answer["choices"][0]["message"]["content"] == "one t"
    assert answer["choices"][0]["stop_reason"] == ord("w")
    assert answer["usage"]["completion_tokens"] == len("one tw")


def test_special_tokens_are_shown_when_asked_for(http: httpx.Client) -> None:
    answer = http.post("/v1/chat/completions", json=chat("Hi", skip_special_tokens=False)).json()
    assert answer["choices"][0]["message"]["content"] == "Hi<|im_end|>"


@pytest.mark.parametrize(("includes", "content"), [(False, "one t"), (True, "one tw")])
def test_a_stop_token_of_the_request_is_shown_only_as_a_stop(
    http: httpx.Client, includes: bool, content: str
) -> None:
    fields = {"skip_special_tokens": False, "include_stop_str_in_output": includes}
    answer = http.post(
        "/v1/chat/completions", json=chat("one two", stop_token_ids=[ord("w")], **fields)
    ).json()
    assert answer["choices"][0]["message"]["content"] == content


@pytest.mark.parametrize("is_stream", [False, True])
def test_logprobs_have_one_entry_per_token_of_the_text(
    client: openai.OpenAI, is_stream: bool
) -> None:
    if is_stream:
        chunks = stream(client, logprobs=True, top_logprobs=3)
        shown = [
            chunk.choices[0].logprobs for chunk in chunks if chunk.choices[0].logprobs is not None
        ]
        entries = [entry for logprobs in shown for entry in logprobs.content or []]
    else:
        answer = client.chat.completions.create(
            model="parrot", messages=HELLO, logprobs=True, top_logprobs=3
        )
        assert answer.choices[0].logprobs is not None
        entries = answer.choices[0].logprobs.content or []
    assert b"".join(bytes(entry.bytes or []) for entry in entries).decode() == "Hello, wörld 🦉"
    assert entries[0].token == "H"
    assert entries[0].logprob == 0.0
    assert [top.token for top in entries[0].top_logprobs] == ["H", "I", "J"]


def test_logprobs_alone_have_no_alternatives(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="parrot", messages=HELLO, logprobs=True)
    assert answer.choices[0].logprobs is not None
    assert all(entry.top_logprobs == [] for entry in answer.choices[0].logprobs.content or [])


@pytest.mark.parametrize(
    "fields", [{}, {"n": 2}, {"best_of": 2}, {"max_tokens": 0}, {"logprobs": True}]
)
def test_prompt_logprobs_have_one_entry_per_prompt_token(
    http: httpx.Client, fields: dict[str, object]
) -> None:
    body = chat("Hi", prompt_logprobs=2, **fields)
    answer = http.post("/v1/chat/completions", json=body).json()
    first, *entries = answer["prompt_logprobs"]

    assert first is None
    assert len(entries) == answer["usage"]["prompt_tokens"] - 1
    assert entries[4] == {
        "10": {"logprob": 0.0, "rank": 1, "decoded_token": "\n"},
        "11": {"logprob": -99.0, "rank": 2, "decoded_token": "\x0b"},
    }
    assert len(answer["choices"]) == fields.get("n", 1)

    events = read_events(http.post("/v1/chat/completions", json={**body, "stream": True}))
    assert json.loads(events[0])["prompt_logprobs"] == answer["prompt_logprobs"]
    assert not any("prompt_logprobs" in event for event in events[1:])


@pytest.mark.parametrize("is_stream", [False, True])
def test_scoring_alone_generates_nothing(http: httpx.Client, is_stream: bool) -> None:
    response = http.post(
        "/v1/chat/completions", json=chat("Hi", prompt_logprobs=0, max_tokens=0, stream=is_stream)
    )

    answer = json.loads(read_events(response)[0]) if is_stream else response.json()
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "length"
    if not is_stream:
        assert choice["message"]["content"] == ""
        assert answer["usage"]["completion_tokens"] == 0


def test_prompt_logprobs_are_absent_when_nobody_asks(http: httpx.Client) -> None:
    assert http.post("/v1/chat/completions", json=chat("Hi")).json()["prompt_logprobs"] is None


def test_an_empty_answer_still_introduces_itself(http: httpx.Client) -> None:
    events = read_events(http.post("/v1/chat/completions", json=chat("x", stop="x", stream=True)))
    assert len(events) == 3
    assert '"delta":{"role":"assistant","content":""}' in events[0]
    assert '"finish_reason":"stop"' in events[1]


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1.0, "max_tokens": "3"},
        {"temperature": None, "stop": None, "stream": None, "tools": None, "response_format": None},
        {
            "response_format": {"type": "text"},
            "tools": [],
            "tool_choice": "none",
            "parallel_tool_calls": True,
        },
        {
            "store": False,
            "service_tier": "auto",
            "modalities": ["text"],
            "best_of": 1,
            "logit_bias": {},
        },
        {
            "n": 2,
            "best_of": 2,
            "num_beams": 1,
            "detokenize": True,
            "prompt_cache_retention": "in_memory",
        },
        {
            "user": "me",
            "metadata": {"a": "b"},
            "safety_identifier": "x",
            "prompt_cache_key": "y",
            "cache_salt": "z",
        },
        {
            "reasoning_effort": "none",
            "enable_thinking": False,
            "thinking": {"type": "disabled"},
            "documents": [],
        },
        {
            "continue_final_message": False,
            "add_special_tokens": False,
            "chat_template_kwargs": {},
            "priority": -1,
        },
    ],
)
def test_fields_with_default_values_are_accepted(
    http: httpx.Client, fields: dict[str, object]
) -> None:
    response = http.post("/v1/chat/completions", json=chat("Hello", **fields))
    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] in ("Hello", "Hel")
