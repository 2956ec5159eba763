"""Anthropic's messages are answered in its form, whole and as events."""

import json
import re

import httpx
import pytest

from ouzel.api.anthropic.block_writer import fold_blocks
from ouzel.api.anthropic.message_object import (
    AnsweredToolUse,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    InputPiece,
)
from ouzel.api.anthropic.messages import Messages
from ouzel.api.anthropic.threads import HeldConversations
from ouzel.config import LimitsConfig
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.anthropic.exchanges import (
    LOOK,
    PATH,
    REST,
    SAYINGS,
    Json,
    build_request,
    fold_events,
    last_prompt,
    read_error,
    read_events,
)
from tests.api.serving import running_server

THINKING = {"type": "adaptive"}


def post_message(http: httpx.Client, said: str, **fields: object) -> Json:
    response = http.post(PATH, json=build_request(said, **fields))
    assert response.status_code == 200, response.text
    message: Json = response.json()
    return message


def remove_ids(message: Json) -> Json:
    """Removes ids and cache figures, which differ between answers to the same request."""
    content = [
        {key: value for key, value in block.items() if key != "id"} for block in message["content"]
    ]
    counts = {
        key: value for key, value in message["usage"].items() if not key.endswith("input_tokens")
    }
    num_input = message["usage"]["input_tokens"] + message["usage"]["cache_read_input_tokens"]
    return message | {"id": "", "content": content, "usage": counts | {"all input": num_input}}


@pytest.mark.parametrize("saying", SAYINGS)
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"thinking": THINKING},
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        {"max_tokens": 40},
        {"max_tokens": 0},
        {"stop_sequences": ["up", "wl"]},
    ],
    ids=json.dumps,
)
def test_a_stream_adds_up_to_the_whole_message(
    http: httpx.Client, saying: str, fields: Json
) -> None:
    body = build_request(SAYINGS[saying], tools=[LOOK, REST], **fields)
    whole = http.post(PATH, json=body).json()

    events = read_events(http.post(PATH, json=body | {"stream": True}))

    assert events[1] == {"type": "ping"}
    assert remove_ids(fold_events(events)) == remove_ids(whole)


def test_a_message_has_the_fields_of_anthropics_messages(http: httpx.Client) -> None:
    response = http.post(PATH, json=build_request("Hi"), params={"beta": "true", "other": "1"})
    message = response.json()
    assert message.pop("id").startswith("msg_")
    usage = message.pop("usage")
    assert message == {
        "type": "message",
        "role": "assistant",
        "model": "org/parrot",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "stop_details": None,
    }
    assert (
        usage["output_tokens"],
        usage["service_tier"],
        usage["cache_creation_input_tokens"],
    ) == (3, "standard", 0)
    assert "server_tool_use" not in usage
    assert response.headers["request-id"] == response.headers["x-request-id"]


def test_a_streamed_message_leaves_the_same_keys_out(http: httpx.Client) -> None:
    events = read_events(http.post(PATH, json=build_request("Hi", stream=True)))
    starts = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    assert starts == [{"type": "text", "text": ""}]
    assert not {"citations", "container", "server_tool_use", "context_management"} & set(
        re.findall(r"\w+", str(events))
    )


def test_thinking_comes_before_the_text_and_is_signed(http: httpx.Client) -> None:
    thinking, text = post_message(http, SAYINGS["thinking"], thinking=THINKING)["content"]
    assert thinking.pop("signature").startswith("ouzel-thinking-1.")
    assert (thinking, text["text"]) == (
        {"type": "thinking", "thinking": "let me see"},
        "It is an owl.",
    )


def test_thinking_that_is_not_shown_is_in_the_signature(http: httpx.Client) -> None:
    omitted = {"type": "adaptive", "display": "omitted"}
    events = read_events(
        http.post(PATH, json=build_request(SAYINGS["thinking"], thinking=omitted, stream=True))
    )
    assert "thinking_delta" not in str(events)
    block = fold_events(events)["content"][0]
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [block]}]
    post_message(
        http,
        "",
        messages=[*history, {"role": "user", "content": [{"type": "text", "text": "Go on"}]}],
    )
    assert block["thinking"] == ""


def test_calls_are_blocks_with_ids_and_inputs(http: httpx.Client) -> None:
    message = post_message(
        http, SAYINGS["thinking, text and calls"], tools=[LOOK, REST], thinking=THINKING
    )
    _, text, look, rest = message["content"]
    assert (text["text"], message["stop_reason"]) == ("I look.\n", "tool_use")
    assert (look["name"], look["input"], rest["name"], rest["input"]) == (
        "look",
        {"place": "up"},
        "rest",
        {},
    )
    assert look["id"].startswith("toolu_") and look["id"] != rest["id"]


def test_an_input_that_is_nested_too_deeply_is_shown_as_it_was_written() -> None:
    written = '{"place":' + "[" * 5000 + "]" * 5000 + "}"
    call = ContentBlockStart(0, AnsweredToolUse("toolu_1", "look", {}))
    [block] = fold_blocks([call, ContentBlockDelta(0, InputPiece(written)), ContentBlockStop(0)])
    assert isinstance(block, AnsweredToolUse) and block.input == {"INVALID_JSON": written}


def test_an_input_that_was_cut_is_shown_as_it_was_written(http: httpx.Client) -> None:
    message = post_message(http, SAYINGS["call"], tools=[LOOK], max_tokens=50)
    assert message["stop_reason"] == "max_tokens"
    assert message["content"][0]["input"] == {"INVALID_JSON": '{"place"'}


@pytest.mark.parametrize(
    ("fields", "stop_reason", "stop_sequence", "text"),
    [
        ({}, "end_turn", None, "Hello, you"),
        ({"max_tokens": 5}, "max_tokens", None, "Hello"),
        ({"stop_sequences": ["xyz", "lo"]}, "stop_sequence", "lo", "Hel"),
    ],
)
def test_stop_reasons(
    http: httpx.Client, fields: Json, stop_reason: str, stop_sequence: str | None, text: str
) -> None:
    message = post_message(http, "Hello, you", **fields)
    assert (message["stop_reason"], message["stop_sequence"]) == (stop_reason, stop_sequence)
    assert message["content"][0]["text"] == text


def test_a_prompt_may_be_computed_for_the_cache_alone(http: httpx.Client) -> None:
    message = post_message(http, "Hello", max_tokens=0)
    assert (message["content"], message["stop_reason"], message["usage"]["output_tokens"]) == (
        [],
        "max_tokens",
        0,
    )


def test_cached_tokens_are_counted_apart() -> None:
    with running_server(engine_factory="create_grammar_parrot") as server, server.client() as http:
        first, second = (post_message(http, "a" * 100, max_tokens=1)["usage"] for _ in range(2))
    assert first["cache_read_input_tokens"] == 0 < second["cache_read_input_tokens"]
    assert second["input_tokens"] + second["cache_read_input_tokens"] == first["input_tokens"]


def test_the_end_of_the_context_has_a_reason_of_its_own() -> None:
    with running_server({"max_model_len": 64}) as server, server.client() as http:
        message = post_message(http, "a" * 30, max_tokens=4000)
        assert message["stop_reason"] == "model_context_window_exceeded"
        status, kind, text = read_error(http.post(PATH, json=build_request("a" * 100)))
        counted = read_error(http.post(f"{PATH}/count_tokens", json=build_request("a" * 100)))
    assert (status, kind) == (400, "invalid_request_error")
    assert text == counted[2] == "prompt is too long: 119 tokens > 63 maximum"


def test_a_last_message_of_the_assistant_is_continued(http: httpx.Client) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "I say"}]
    post_message(http, "", messages=messages)
    assert last_prompt().endswith("\nI say")


@pytest.mark.parametrize(
    ("thinking", "is_off"),
    [({}, True), ({"thinking": {"type": "disabled"}}, True), ({"thinking": THINKING}, False)],
    ids=["absent", "disabled", "adaptive"],
)
def test_a_model_thinks_where_it_is_enabled(
    http: httpx.Client, thinking: Json, is_off: bool
) -> None:
    post_message(http, "Hi", **thinking)
    assert last_prompt().endswith("</think>\n\n") is is_off


def test_a_budget_beyond_the_context_is_the_context() -> None:
    """A message to the engine cannot carry numbers of more than 64 bits."""
    thinks = OutputFormat(reasoning=THINKING_ONLY)
    thinking = {"type": "enabled", "budget_tokens": 10**30}
    with running_server(output_format=thinks) as server:
        prepared = Messages(server.model, LimitsConfig(), HeldConversations(), None).prepare(
            build_request("Hi", max_tokens=10**31, thinking=thinking), 0.0
        )
    assert isinstance(prepared, tuple)
    [request], _ = prepared
    assert request.reasoning_budget is not None and request.reasoning_budget.max_tokens == 4096


def test_a_fault_in_the_middle_is_an_event() -> None:
    with running_server() as server, server.client() as http:
        events = read_events(http.post(PATH, json=build_request("ab<|fail|>", stream=True)))
    assert events[-1]["type"] == "error" and events[-1]["error"]["type"] == "api_error"
    assert "message_stop" not in str(events)
