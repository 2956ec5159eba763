"""`include: ["reasoning.encrypted_content"]` gives clients reasoning that they can send back."""

import json
import logging

import httpx
import openai.types.responses as openai_types
import pytest

from ouzel.responses.input_items import read_input, read_messages
from ouzel.responses.item_fields import Message
from ouzel.responses.items.packed_text import REASONING, SUMMARY
from tests.api.requests import Json, read_error
from tests.api.responses.strict import (
    named_events,
    strict_events,
    strict_item,
    strict_items,
    strict_response,
)
from tests.api.responses.test_conversations import create_conversation
from tests.api.responses.test_input import call, message, output, reasoning
from tests.api.responses.test_response import SAYINGS, build_request

INCLUDE = "reasoning.encrypted_content"
PACKED = REASONING.pack("let me see")
FOREIGN = "gAAAAABotOkA"


def item(encrypted: object, *, summary: tuple[str, ...] = (), **fields: object) -> Message:
    """Builds an item of an agent that has only the encrypted form of the reasoning."""
    texts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "summary": texts, "encrypted_content": encrypted, **fields}


def find_encrypted(body: object) -> list[object]:
    """Returns the encrypted contents anywhere in the body, in their order."""
    if isinstance(body, list):
        return [found for value in body for found in find_encrypted(value)]
    if not isinstance(body, dict):
        return []
    if body.get("type") == "reasoning":
        return [body.get("encrypted_content")]
    return [found for value in body.values() for found in find_encrypted(value)]


@pytest.mark.parametrize(
    "ending", [{}, {"max_output_tokens": 12}, {"reasoning": {"summary": "auto"}}]
)
def test_items_have_the_same_text_once_more(thinker_http: httpx.Client, ending: Json) -> None:
    shown = thinker_http.post(
        "/v1/responses", json=build_request(SAYINGS["reasoning"], include=[INCLUDE], **ending)
    )
    first = strict_response(shown.text).output[0]
    assert isinstance(first, openai_types.ResponseReasoningItem) and first.content is not None
    assert first.encrypted_content == REASONING.pack(first.content[0].text)


def test_events_have_it_from_the_first_to_the_last(thinker_http: httpx.Client) -> None:
    answer = thinker_http.post(
        "/v1/responses", json=build_request(SAYINGS["reasoning"], include=[INCLUDE], stream=True)
    )
    strict_events(answer)
    assert [
        (name, found)
        for name, data in named_events(answer)
        for found in find_encrypted(json.loads(data))
    ] == [
        ("response.output_item.added", REASONING.pack("")),
        ("response.output_item.done", PACKED),
        ("response.completed", PACKED),
    ]


def test_without_it_items_have_no_such_key(thinker_http: httpx.Client) -> None:
    shown = thinker_http.post(
        "/v1/responses", json=build_request(SAYINGS["reasoning"], include=[])
    ).json()
    assert "encrypted_content" not in shown["output"][0]


@pytest.mark.parametrize("is_made_with_it", [False, True])
def test_a_stored_response_is_read_with_encrypted_reasoning(
    thinker_http: httpx.Client, is_made_with_it: bool
) -> None:
    body = build_request(SAYINGS["reasoning"], include=[INCLUDE] if is_made_with_it else [])
    path = f"/v1/responses/{thinker_http.post('/v1/responses', json=body).json()['id']}"
    query = {"include[]": INCLUDE}

    whole = strict_response(thinker_http.get(path, params=query).text)
    replayed = strict_events(thinker_http.get(path, params={**query, "stream": True}))

    assert find_encrypted(json.loads(whole.to_json())) == [PACKED]
    packed = [found for event in replayed for found in find_encrypted(event.to_dict())]
    assert packed == [REASONING.pack(""), PACKED, PACKED]
    without = thinker_http.get(path).json()
    assert find_encrypted(without) == [PACKED if is_made_with_it else None]


def test_encrypted_reasoning_is_read_back(caplog: pytest.LogCaptureFixture) -> None:
    given = [item(PACKED, id="rs_of_another", status=None), message("assistant", "An owl.")]
    [shown] = read_messages(read_input(given), None)
    assert shown.fields == message("assistant", "An owl.", reasoning_content="let me see")
    assert not caplog.records


READ: dict[str, tuple[Message, object]] = {
    "the text rather than the packed one": (item(PACKED, content=reasoning("hm")["content"]), "hm"),
    "the packed text rather than its summary": (item(PACKED, summary=("hm",)), "let me see"),
    "the summary of another server's": (item(FOREIGN, summary=("hm",)), "hm"),
    "null": (item(None, summary=("hm",), content=None), "hm"),
    "nothing": (item(REASONING.pack("")), ""),
}


@pytest.mark.parametrize("case", READ)
def test_the_best_form_of_it_counts(case: str) -> None:
    given, expected = READ[case]
    [shown] = read_messages(read_input([given, call("a")]), None)
    assert shown.fields["reasoning_content"] == expected


@pytest.mark.parametrize("content", [FOREIGN, PACKED[:-4], SUMMARY.pack("let me see"), "ä"])
def test_reasoning_encrypted_elsewhere_is_left_out(
    content: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = [message("user", "Hi"), item(content), call("a"), output("a")]
    with caplog.at_level(logging.INFO, "ouzel.responses"):
        shown = read_messages(read_input(given), None)
    assert [each.fields["role"] for each in shown] == ["user", "assistant", "tool"]
    assert "reasoning_content" not in shown[1].fields
    assert "left out" in caplog.text and "input[1]" in caplog.text


def test_the_model_reads_reasoning_that_an_agent_stores(thinker_http: httpx.Client) -> None:
    """The template shows the reasoning of a turn that goes on after a call."""

    def num_tokens(*thoughts: Message) -> int:
        body = build_request(
            "", input=[message("user", "Hi"), *thoughts, call("a"), output("a")], store=False
        )
        usage = strict_response(thinker_http.post("/v1/responses", json=body).text).usage
        assert usage is not None
        return usage.input_tokens

    held, shown = num_tokens(item(PACKED)), num_tokens(reasoning("let me see"))
    assert num_tokens() == num_tokens(item(FOREIGN)) < held == shown


def test_reasoning_that_is_left_out_stays_out_of_a_continuation(thinker_http: httpx.Client) -> None:
    given = [message("user", "Hi"), item(FOREIGN), message("user", "you")]
    first = thinker_http.post("/v1/responses", json=build_request("", input=given)).json()
    more = message("user", "go on")
    continued = build_request("", input=[more], previous_response_id=first["id"])
    resent = build_request("", input=[*given, *first["output"], more])
    kept, sent = [
        thinker_http.post("/v1/responses/input_tokens", json=each).json()
        for each in (continued, resent)
    ]
    assert kept == sent


def test_a_conversation_keeps_its_text(thinker_http: httpx.Client) -> None:
    conversation = create_conversation(
        thinker_http, items=[item(PACKED), message("assistant", "An owl.")]
    )
    path = f"/v1/conversations/{conversation}/items"

    plain = thinker_http.get(path, params={"order": "asc"}).json()["data"][0]
    packed = strict_items(
        thinker_http.get(path, params={"order": "asc", "include": INCLUDE}).text
    ).data[0]

    assert plain["content"] == [{"type": "reasoning_text", "text": "let me see"}]
    assert "encrypted_content" not in plain
    single = strict_item(
        thinker_http.get(f"{path}/{plain['id']}", params={"include": INCLUDE}).text
    )
    assert find_encrypted([packed.to_dict(), single.to_dict()]) == [PACKED, PACKED]


def test_encrypted_content_must_be_a_string(http: httpx.Client) -> None:
    error = read_error(http.post("/v1/responses", json={"model": "parrot", "input": [item(7)]}))
    assert error["message"] == "input[0].encrypted_content must be a string, given 7"


NEVER_THERE = [
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "web_search_call.action.sources",
]


def test_an_include_without_such_items_is_a_hint(thinker_http: httpx.Client) -> None:
    response = strict_response(
        thinker_http.post("/v1/responses", json=build_request("Hi", include=NEVER_THERE)).text
    )
    assert response.output_text == "Hi"
    listed = thinker_http.get(
        f"/v1/responses/{response.id}/input_items", params={"include[]": NEVER_THERE}
    )
    assert strict_items(listed.text).data


def test_an_unknown_include_is_a_400(http: httpx.Client) -> None:
    error = read_error(
        http.post(
            "/v1/responses", json={"model": "parrot", "input": "Hi", "include": ["reasoning"]}
        )
    )
    assert error["param"] == "include[0]"
    assert INCLUDE in error["message"] and error["message"].endswith(', given "reasoning"')
