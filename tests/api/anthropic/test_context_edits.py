"""Context edits shorten the prompt by their rules, and the answer gives the number of tokens."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

import httpx
import pytest

from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.anthropic.exchanges import (
    LOOK,
    PATH,
    REST,
    Json,
    build_request,
    fold_events,
    last_prompt,
    read_error,
    read_events,
)
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN

COUNT_PATH = f"{PATH}/count_tokens"
TOOLS = "clear_tool_uses_20250919"
THINKING = "clear_thinking_20251015"
REMEMBERING = QWEN.replace("loop.index0 > ns.last and ", "")  # shows the thinking of all turns


def serve_model_with_old_thinking(
    max_model_len: int = 4096,
) -> AbstractContextManager[RunningServer]:
    return running_server(
        {"max_model_len": max_model_len},
        chat_template=REMEMBERING,
        output_format=OutputFormat(calls=HERMES, reasoning=THINKING_ONLY),
        engine_factory="create_recording_parrot",
    )


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with serve_model_with_old_thinking() as server, server.client() as http:
        yield http


def call(number: int, name: str = "look") -> Json:
    return {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": name,
        "input": {"place": f"place-{number}"},
    }


def result(number: int) -> Json:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"result-{number}"}


def chat(*names: str) -> list[Json]:
    """Builds a chat in which the named tools were called one after the other."""
    messages: list[Json] = [{"role": "user", "content": "Look around."}]
    for number, name in enumerate(names):
        messages.append({"role": "assistant", "content": [call(number, name)]})
        messages.append({"role": "user", "content": [result(number)]})
    return messages


def body(messages: list[Json], *edits: Json) -> Json:
    return build_request(
        "", messages=messages, tools=[LOOK, REST], context_management={"edits": list(edits)}
    )


def post_message(http: httpx.Client, fields: Json, path: str = PATH) -> Json:
    response = http.post(path, json=fields)
    assert response.status_code == 200, response.text
    message: Json = response.json()
    return message


def find_numbers_in_prompt(word: str) -> list[int]:
    return [number for number in range(9) if f"{word}-{number}" in last_prompt()]


def uses(value: int) -> Json:
    return {"type": "tool_uses", "value": value}


def tokens(value: int) -> Json:
    return {"type": "input_tokens", "value": value}


@pytest.mark.parametrize(
    ("edit", "results", "inputs"),
    [
        ({}, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),  # far fewer than 100,000 tokens
        ({"trigger": uses(4)}, [2, 3, 4], [0, 1, 2, 3, 4]),
        ({"trigger": uses(5)}, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
        ({"trigger": tokens(100)}, [2, 3, 4], [0, 1, 2, 3, 4]),
        ({"trigger": uses(1), "keep": uses(1)}, [4], [0, 1, 2, 3, 4]),
        ({"trigger": uses(1), "keep": uses(0)}, [], [0, 1, 2, 3, 4]),
        ({"trigger": uses(1), "keep": uses(9)}, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
        ({"trigger": uses(1), "exclude_tools": ["rest"]}, [1, 2, 3, 4], [0, 1, 2, 3, 4]),
        ({"trigger": uses(1), "clear_tool_inputs": True}, [2, 3, 4], [2, 3, 4]),
        ({"trigger": uses(1), "clear_tool_inputs": False}, [2, 3, 4], [0, 1, 2, 3, 4]),
        ({"trigger": uses(1), "clear_tool_inputs": ["rest"]}, [2, 3, 4], [0, 2, 3, 4]),
        ({"trigger": uses(1), "clear_at_least": tokens(100_000)}, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
    ],
    ids=str,
)
def test_results_of_old_calls_are_left_out_by_the_edits_rules(
    http: httpx.Client, edit: Json, results: list[int], inputs: list[int]
) -> None:
    message = post_message(
        http, body(chat("look", "rest", "look", "look", "look"), {"type": TOOLS, **edit})
    )

    assert (find_numbers_in_prompt("result"), find_numbers_in_prompt("place")) == (results, inputs)
    applied = message["context_management"]["applied_edits"]
    assert [edit["cleared_tool_uses"] for edit in applied] == (
        [5 - len(results)] if len(results) < 5 else []
    )


def test_cleared_content_is_counted_in_tokens(http: httpx.Client) -> None:
    messages = chat("look", "look")
    messages[2]["content"][0]["content"] = "x" * 1000
    edit = {"type": TOOLS, "trigger": tokens(1000), "keep": uses(1), "clear_at_least": tokens(500)}
    plain = post_message(http, body(messages), COUNT_PATH)

    counted = post_message(http, body(messages, edit), COUNT_PATH)
    [applied] = post_message(http, body(messages, edit))["context_management"]["applied_edits"]

    assert counted["context_management"] == {"original_input_tokens": plain["input_tokens"]}
    assert plain["input_tokens"] - counted["input_tokens"] == applied["cleared_input_tokens"] > 900
    assert applied == {
        "type": TOOLS,
        "cleared_tool_uses": 1,
        "cleared_input_tokens": applied["cleared_input_tokens"],
    }


def test_a_stream_tells_the_applied_edits_at_its_end(http: httpx.Client) -> None:
    fields = body(chat("look", "look"), {"type": TOOLS, "trigger": uses(1), "keep": uses(1)})
    whole = post_message(http, fields)["context_management"]

    *_, delta, _ = events = read_events(http.post(PATH, json=fields | {"stream": True}))

    assert delta["context_management"] == whole
    assert "context_management" not in events[0]["message"]


def test_answers_say_nothing_of_a_context_that_is_not_managed(http: httpx.Client) -> None:
    assert "context_management" not in post_message(http, build_request("Hi"))
    assert "context_management" not in post_message(http, build_request("Hi"), COUNT_PATH)
    assert post_message(http, body(chat()))["context_management"] == {"applied_edits": []}


def post_thought(http: httpx.Client, text: str) -> list[Json]:
    message = fold_events(
        read_events(
            http.post(
                PATH,
                json=build_request(
                    f"<think>{text}</think>A", thinking={"type": "adaptive"}, stream=True
                ),
            )
        )
    )
    content: list[Json] = message["content"]
    return content


def find_thoughts_in_prompt() -> set[str]:
    return {word for word in ("one", "two", "three") if f"<think>\n{word}" in last_prompt()}


def test_only_the_newest_turns_keep_their_thinking(http: httpx.Client) -> None:
    """A tool's result does not end a turn: "two" and "three" belong to the same turn."""
    one, two, three = (post_thought(http, text) for text in ("one", "two", "three"))
    messages: list[Json] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [*one, call(0)]},
        {"role": "user", "content": [result(0), {"type": "text", "text": "Go on"}]},
        {"role": "assistant", "content": [*two, call(1)]},
        {"role": "user", "content": [result(1)]},
        {"role": "assistant", "content": [*three, call(2)]},
        {"role": "user", "content": [result(2)]},
    ]
    keeps: list[tuple[object, set[str]]] = [
        ("all", {"one", "two", "three"}),
        ({"type": "all"}, {"one", "two", "three"}),
        ({"type": "thinking_turns", "value": 2}, {"one", "two", "three"}),
        ({"type": "thinking_turns", "value": 1}, {"two", "three"}),
        (None, {"two", "three"}),
    ]
    for keep, thoughts in keeps:
        edit = {"type": THINKING} if keep is None else {"type": THINKING, "keep": keep}
        applied = post_message(http, body(messages, edit))["context_management"]["applied_edits"]
        assert find_thoughts_in_prompt() == thoughts
        assert [edit["cleared_thinking_turns"] for edit in applied] == (
            [1] if "one" not in thoughts else []
        )


def test_edits_are_applied_one_after_the_other(http: httpx.Client) -> None:
    one, two = post_thought(http, "one"), post_thought(http, "two")
    messages: list[Json] = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [*one, call(0)]},
        {"role": "user", "content": [result(0), {"type": "text", "text": "Go on"}]},
        {"role": "assistant", "content": two},
        {"role": "user", "content": "And?"},
    ]
    edits = ({"type": THINKING}, {"type": TOOLS, "trigger": tokens(0), "keep": uses(0)})

    applied = post_message(http, body(messages, *edits))["context_management"]["applied_edits"]

    assert (find_thoughts_in_prompt(), find_numbers_in_prompt("result")) == ({"two"}, [])
    assert [edit["type"] for edit in applied] == [THINKING, TOOLS]


def test_an_edit_that_clears_nothing_more_is_not_listed(http: httpx.Client) -> None:
    edit = {"type": TOOLS, "trigger": uses(1), "keep": uses(1)}
    edits = (edit, edit, {**edit, "clear_tool_inputs": True}, {**edit, "clear_tool_inputs": True})
    messages = chat("look", "look")
    messages[2]["content"][0]["content"] = "x" * 200

    applied = post_message(http, body(messages, *edits))["context_management"]["applied_edits"]

    assert [each["cleared_tool_uses"] for each in applied] == [1, 1]
    assert all(each["cleared_input_tokens"] > 0 for each in applied)


def test_the_number_of_edits_is_bounded(http: httpx.Client) -> None:
    """Each edit may tokenize the chat again, so many edits would occupy a thread for minutes."""
    edit = {"type": TOOLS, "trigger": uses(1), "keep": uses(0)}
    post_message(http, body(chat("look"), *[edit] * 16))
    status, _, text = read_error(http.post(PATH, json=body(chat("look"), *[edit] * 17)))
    assert (status, text[:57]) == (400, "context_management.edits must have a length <= 16, given ")


def test_edits_make_a_chat_fit_that_is_too_long_without_them() -> None:
    messages = chat("look", "look")
    messages[2]["content"][0]["content"] = "x" * 30_000
    fields = body(
        messages,
        {"type": TOOLS, "trigger": tokens(1000), "keep": uses(1), "clear_at_least": tokens(20_000)},
    )
    fields["max_tokens"] = 1
    with serve_model_with_old_thinking(max_model_len=2048) as server, server.client() as http:
        plain = http.post(PATH, json=fields | {"context_management": None})
        [applied] = post_message(http, fields)["context_management"]["applied_edits"]
    assert read_error(plain)[0] == 400 and "prompt is too long" in read_error(plain)[2]
    assert applied["cleared_input_tokens"] > 29_000


def test_a_chat_that_is_too_long_to_be_counted_reaches_its_trigger() -> None:
    """The server only estimates the tokens of a chat that is far longer than the context."""
    messages = chat("look", "look")
    messages[2]["content"][0]["content"] = "x" * 200_000
    edit = {
        "type": TOOLS,
        "trigger": tokens(20_000),
        "keep": uses(1),
        "clear_at_least": tokens(20_000),
    }
    with serve_model_with_old_thinking(max_model_len=2048) as server, server.client() as http:
        [applied] = post_message(http, body(messages, edit) | {"max_tokens": 1})[
            "context_management"
        ]["applied_edits"]
    assert applied["cleared_input_tokens"] > 20_000


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"type": "compact_20260112"}, "context_management.edits[0].type must be one of"),
        ({"type": TOOLS, "keep": tokens(3)}, "context_management.edits[0].keep.type must be"),
        (
            {"type": TOOLS, "trigger": uses(-1)},
            "context_management.edits[0].trigger.value must be >= 0, given -1",
        ),
        (
            {"type": TOOLS, "clear_tool_inputs": 1},
            "context_management.edits[0].clear_tool_inputs must be",
        ),
        (
            {"type": TOOLS, "exclude_tools": "look"},
            "context_management.edits[0].exclude_tools must be a list",
        ),
    ],
    ids=str,
)
def test_an_edit_that_is_not_honoured_is_named(
    http: httpx.Client, edit: Json, message: str
) -> None:
    status, kind, text = read_error(http.post(PATH, json=body(chat("look"), edit)))
    assert (status, kind) == (400, "invalid_request_error")
    assert text.startswith(message), text
