"""The input of a response becomes chat messages, or is refused."""

import json

import httpx
import pytest

from ouzel.responses.input_items import read_input, read_messages
from ouzel.responses.item_fields import Message
from tests.api.requests import Json, chat, read_error
from tests.api.responses.strict import strict_items, strict_response
from tests.api.responses.test_response import LOOK, SAYINGS, build_request


def call(call_id: str, name: str = "look", arguments: str = "{}") -> Message:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str, given: object = "seen") -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": given}


def reasoning(*texts: str, summary: tuple[str, ...] = ()) -> Message:
    return {
        "type": "reasoning",
        "id": "rs_1",
        "content": [{"type": "reasoning_text", "text": text} for text in texts],
        "summary": [{"type": "summary_text", "text": text} for text in summary],
    }


def message(role: str, content: object, **fields: object) -> Message:
    return {"role": role, "content": content, **fields}


def tool_call(call_id: str, name: str = "look", arguments: str = "{}") -> Message:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


USER, CALLED = message("user", "Hi"), message("assistant", "", tool_calls=[tool_call("a")])
PATCHED: Message = {"type": "custom_tool_call", "name": "patch", "input": "+a"}
PATCH_CALL: Message = {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "+a"}}
SEEN = message("tool", "seen", tool_call_id="a", name="look")
TEXT: Json = {"type": "text", "text": "Hi"}
CASES: dict[str, tuple[object, list[Message]]] = {
    "a string": ("Hi", [USER]),
    "a message without type": ([USER], [USER]),
    "a message with type": ([{"type": "message", **USER}], [USER]),
    "all roles": (
        [message(role, "Hi") for role in ("system", "developer", "user", "assistant")],
        [message(role, "Hi") for role in ("system", "developer", "user", "assistant")],
    ),
    "parts": (
        [message("user", [{"type": "input_text", "text": "Hi"}] * 2)],
        [message("user", [TEXT, TEXT])],
    ),
    "an assistant's parts": (
        [message("assistant", [{"type": "output_text", "text": "Hi", "annotations": []}])],
        [message("assistant", [TEXT])],
    ),
    "a refusal": (
        [message("assistant", [{"type": "refusal", "refusal": "No."}])],
        [message("assistant", [{"type": "text", "text": "No."}])],
    ),
    "a call and its output": ([USER, call("a"), output("a")], [USER, CALLED, SEEN]),
    "an output in parts": (
        [call("a"), output("a", [{"type": "input_text", "text": "Hi"}])],
        [CALLED, message("tool", [TEXT], tool_call_id="a", name="look")],
    ),
    "calls in a row are of one message": (
        [call("a"), call("b"), output("b"), output("a")],
        [
            message("assistant", "", tool_calls=[tool_call("a"), tool_call("b")]),
            message("tool", "seen", tool_call_id="b", name="look"),
            SEEN,
        ],
    ),
    "text before a call": (
        [message("assistant", "I look."), call("a")],
        [message("assistant", "I look.", tool_calls=[tool_call("a")])],
    ),
    "text after a call": (
        [call("a"), message("assistant", "I look.")],
        [message("assistant", "I look.", tool_calls=[tool_call("a")])],
    ),
    "a call id comes again once it is answered": (
        [call("a"), output("a"), USER, call("a", "rest"), output("a")],
        [
            CALLED,
            SEEN,
            USER,
            message("assistant", "", tool_calls=[tool_call("a", "rest")]),
            message("tool", "seen", tool_call_id="a", name="rest"),
        ],
    ),
    "a call goes by its item's id": (
        [{**call("b"), "call_id": None, "id": "a"}, output("a")],
        [CALLED, SEEN],
    ),
    "an output without a call id is of the oldest call": (
        [
            call("a"),
            call("b"),
            {"type": "function_call_output", "output": "seen"},
            {**output("b"), "call_id": None},
        ],
        [
            message("assistant", "", tool_calls=[tool_call("a"), tool_call("b")]),
            SEEN,
            message("tool", "seen", tool_call_id="b", name="look"),
        ],
    ),
    "an output without a call id is of the oldest call of its kind": (
        [
            call("a"),
            PATCHED | {"call_id": None, "id": "b"},
            {"type": "custom_tool_call_output", "output": "seen"},
        ],
        [
            message("assistant", "", tool_calls=[tool_call("a"), PATCH_CALL]),
            message("tool", "seen", tool_call_id="b", name="patch"),
        ],
    ),
    "reasoning without any text": (
        [USER, {"type": "reasoning", "summary": []}, USER],
        [USER, USER],
    ),
    "an output of nothing": (
        [call("a"), output("a", [])],
        [CALLED, message("tool", "", tool_call_id="a", name="look")],
    ),
    "what other servers and newer clients add": (
        [
            message("user", "Hi", id="msg_of_another", status=None, phase=None),
            message(
                "assistant",
                [
                    {
                        "type": "output_text",
                        "text": "Hi",
                        "annotations": [{"type": "url_citation"}],
                        "logprobs": None,
                    }
                ],
                id="msg_2",
                phase="final_answer",
                end_turn=True,
            ),
        ],
        [USER, message("assistant", [TEXT])],
    ),
    "reasoning goes with what follows": (
        [reasoning("one", "two"), reasoning("three"), message("assistant", "Hi")],
        [message("assistant", "Hi", reasoning_content="one\ntwo\nthree")],
    ),
    "reasoning before a call": (
        [reasoning("hm"), call("a")],
        [message("assistant", "", reasoning_content="hm", tool_calls=[tool_call("a")])],
    ),
    "a summary where there is no reasoning text": (
        [reasoning(summary=("one", "two")), message("assistant", "Hi")],
        [message("assistant", "Hi", reasoning_content="one\ntwo")],
    ),
    "the reasoning text rather than its summary": (
        [reasoning("hm", summary=("hm",)), message("assistant", "Hi")],
        [message("assistant", "Hi", reasoning_content="hm")],
    ),
    "reasoning after text begins a message": (
        [message("assistant", "Hi"), reasoning("hm"), call("a")],
        [
            message("assistant", "Hi"),
            message("assistant", "", reasoning_content="hm", tool_calls=[tool_call("a")]),
        ],
    ),
    "reasoning alone": (
        [reasoning("hm"), USER],
        [message("assistant", "", reasoning_content="hm"), USER],
    ),
    "two messages stay two": ([message("assistant", "Hi")] * 2, [message("assistant", "Hi")] * 2),
}


@pytest.mark.parametrize("case", CASES)
def test_input_becomes_messages(case: str) -> None:
    given, expected = CASES[case]
    assert [each.fields for each in read_messages(read_input(given), None)] == expected


def test_instructions_come_first() -> None:
    assert [each.fields for each in read_messages(read_input("Hi"), "Be brief.")] == [
        message("system", "Be brief."),
        USER,
    ]


REFUSED: dict[str, tuple[object, str, str]] = {
    "an empty string": ("", "input", '""'),
    "an empty list": ([], "input", "[]"),
    "a number": (7, "input", "7"),
    "an item that is none": (["x"], "input[0]", '"x"'),
    "an unknown type": ([USER, {"type": "music_call"}], "input[1].type", '"music_call"'),
    "a reference": ([{"type": "item_reference", "id": "msg_1"}], "input[0]", "item_reference"),
    "a reference without type": ([{"id": "msg_1"}], "input[0]", "item_reference"),
    "no role": ([{"content": "Hi"}], "input[0].role", "null"),
    "an unknown role": ([message("tool", "Hi")], "input[0].role", '"tool"'),
    "no content": ([{"role": "user"}], "input[0].content", "null"),
    "empty content": ([message("user", [])], "input[0].content", "[]"),
    "an image": (
        [message("user", [{"type": "input_image"}])],
        "input[0].content[0].type",
        "reads text only",
    ),
    "a part of the chat": ([message("user", [TEXT])], "input[0].content[0].type", '"text"'),
    "a text that is none": (
        [message("user", [{"type": "input_text", "text": 7}])],
        "input[0].content[0].text",
        "7",
    ),
    "a call without id": (
        [{"type": "function_call", "name": "look", "arguments": "{}"}],
        "input[0].call_id",
        "null",
    ),
    "a call without name": ([call("a", "")], "input[0].name", '""'),
    "arguments that are no text": ([{**call("a"), "arguments": {}}], "input[0].arguments", "{}"),
    "a call twice": ([call("a"), call("a")], "input[1].call_id", '"a"'),
    "an output without a call": (
        [{"type": "function_call_output", "output": "x"}],
        "input[0].call_id",
        "must be a non-empty string, given null",
    ),
    "an output of no call": ([USER, output("a")], "input[1].call_id", '"a"'),
    "an output that is none": ([call("a"), output("a", 7)], "input[1].output", "7"),
    "an image as output": (
        [call("a"), output("a", [{"type": "input_image"}])],
        "input[1].output[0].type",
        "text only",
    ),
    "reasoning that is no list": (
        [{"type": "reasoning", "content": "x"}],
        "input[0].content",
        '"x"',
    ),
    "reasoning of another kind": (
        [{"type": "reasoning", "summary": [{"type": "text", "text": "x"}]}],
        "input[0].summary[0].type",
        '"text"',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_items_that_the_model_cannot_read_are_refused(http: httpx.Client, case: str) -> None:
    given, param, told = REFUSED[case]
    answer = http.post("/v1/responses", json={"model": "parrot", "input": given})
    error = read_error(answer)
    assert (answer.status_code, error["param"]) == (400, param)
    assert error["message"].startswith(param) and told in error["message"]


def test_missing_call_ids_are_completed(thinker_http: httpx.Client) -> None:
    given = [{**call("b"), "call_id": None, "id": "a"}, {**output("a"), "call_id": None}, USER]
    response = thinker_http.post("/v1/responses", json={"model": "parrot", "input": given}).json()
    listed = thinker_http.get(
        f"/v1/responses/{response['id']}/input_items", params={"order": "asc"}
    )
    calls = strict_items(listed.text).data[:2]
    assert [item.call_id for item in calls] == ["a", "a"]  # type: ignore[union-attr]


def test_the_prompt_equals_the_prompt_of_the_same_chat(thinker_http: httpx.Client) -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": LOOK["parameters"]}}]
    items = [
        USER,
        reasoning("hm"),
        message("assistant", "I look."),
        call("a"),
        output("a"),
        message("user", "And?"),
    ]
    response = strict_response(
        thinker_http.post(
            "/v1/responses",
            json={"model": "parrot", "input": items, "instructions": "Be brief.", "tools": tools},
        ).text
    )
    messages = [each.fields for each in read_messages(read_input(items), "Be brief.")]
    same = chat("", messages=messages, tools=tools)
    usage = thinker_http.post("/v1/chat/completions", json=same).json()["usage"]
    assert response.usage is not None
    assert usage["prompt_tokens"] == response.usage.input_tokens


def test_resent_items_go_on_where_the_model_stopped(thinker_http: httpx.Client) -> None:
    """Each turn sends back all items of the answers unchanged."""
    items: list[object] = []
    for _ in range(4):
        items.append(message("user", SAYINGS["reasoning, text and calls"]))
        body = build_request("", input=items)
        answer = thinker_http.post("/v1/responses", json=body)
        response = strict_response(answer.text)
        assert [item.type for item in response.output] == [
            "reasoning",
            "message",
            "function_call",
            "function_call",
        ]
        given = json.loads(answer.text)["output"]
        items += given
        items += [
            output(item["call_id"], "done") for item in given if item["type"] == "function_call"
        ]


def turns(num: int, **fields: object) -> Json:
    talk = [
        message(role, f"{number} {'word ' * 5}")
        for number in range(num)
        for role in ("user", "assistant")
    ]
    return {"model": "parrot", "input": [*talk, message("user", "the last")], **fields}


def test_an_input_that_is_too_long_is_refused(http: httpx.Client) -> None:
    answer = http.post("/v1/responses", json=turns(1000))
    error = read_error(answer)
    assert (answer.status_code, error["code"], error["param"]) == (
        400,
        "context_length_exceeded",
        "input",
    )


@pytest.mark.parametrize("limit", [None, 20])
def test_truncation_leaves_out_the_oldest_turns(http: httpx.Client, limit: int | None) -> None:
    body = turns(1000, truncation="auto", max_output_tokens=limit, instructions="Be brief.")
    response = strict_response(http.post("/v1/responses", json=body).text)
    assert (response.status, response.output_text, response.truncation) == (
        "completed",
        "the last",
        "auto",
    )
    short = strict_response(
        http.post("/v1/responses", json=turns(0, instructions="Be brief.")).text
    )
    assert response.usage is not None and short.usage is not None
    assert response.usage.input_tokens > 10 * short.usage.input_tokens


def test_truncation_does_not_change_a_fitting_input(http: httpx.Client) -> None:
    usages = [
        strict_response(http.post("/v1/responses", json=turns(2, truncation=how)).text).usage
        for how in ("auto", "disabled")
    ]
    assert usages[0] is not None and usages[1] is not None
    assert usages[0].input_tokens == usages[1].input_tokens


def test_a_last_turn_that_is_too_long_is_refused_whatever_the_truncation(
    http: httpx.Client,
) -> None:
    body = {
        "model": "parrot",
        "input": [USER, message("user", "word " * 10_000)],
        "truncation": "auto",
    }
    assert read_error(http.post("/v1/responses", json=body))["code"] == "context_length_exceeded"
