"""A context that has grown past its threshold is summarised (`context_management`)."""

from collections.abc import Callable

import httpx
import openai.types.responses as openai_types
import pytest

from ouzel.errors import InvalidRequest
from ouzel.responses.input_items import read_input, read_messages
from ouzel.responses.item_fields import Message
from ouzel.responses.items.compaction_item import text_for_model
from ouzel.responses.items.packed_text import CONTEXT
from tests.api.requests import Json, read_error
from tests.api.responses.strict import named_events, strict_end, strict_events, strict_response
from tests.api.responses.test_input import call, message, output
from tests.api.responses.ways import WAYS, Send, Way

DEVELOPER = message("developer", "Be brief.")
TALK: list[Json] = [
    message(role, f"{role} {number} " + "word " * 20)
    for number in range(5)
    for role in ("user", "assistant")
]
LAST = message("user", "And now?")


def manage_context(threshold: int | None) -> Json:
    return {"context_management": [{"type": "compaction", "compact_threshold": threshold}]}


def body(*items: Json, **fields: object) -> Json:
    return {"model": "parrot", "input": items, **fields}


def compaction(text: str) -> Message:
    return {"type": "compaction", "id": "cmp_1", "encrypted_content": CONTEXT.pack(text)}


def read_context(response: openai_types.Response) -> str:
    """Returns the summary that replaces the earlier items; the model here repeats it."""
    first = response.output[0]
    assert isinstance(first, openai_types.ResponseCompactionItem)
    text = CONTEXT.unpack(first.encrypted_content)
    assert text is not None
    return text


@pytest.fixture
def made(thinker_http: httpx.Client) -> Callable[[Json], openai_types.Response]:
    return lambda body: strict_response(thinker_http.post("/v1/responses", json=body).text)


Made = Callable[[Json], openai_types.Response]


def test_a_context_past_the_threshold_is_summarised_and_answered(made: Made) -> None:
    response = made(body(DEVELOPER, *TALK, LAST, **manage_context(500)))

    text = read_context(response)
    assert [item.type for item in response.output] == ["compaction", "message"]
    assert "[user]\nuser 0 word" in text and "Be brief." not in text
    assert text.endswith(
        "[End of the summary]\n\nAnd now?"
    ) and "And now?" not in text.removesuffix("And now?")
    assert response.output_text == text
    same = made(body(DEVELOPER, message("user", text)))
    assert response.usage is not None and same.usage is not None
    assert response.usage.input_tokens == same.usage.input_tokens


@pytest.mark.parametrize(
    ("threshold", "items"), [(5000, [*TALK, LAST]), (None, [*TALK, LAST]), (1, [LAST])]
)
def test_a_shorter_one_is_left_as_it_is(
    made: Made, threshold: int | None, items: list[Json]
) -> None:
    """A context without earlier messages is also left as it is."""
    response = made(body(*items, **manage_context(threshold)))
    assert [item.type for item in response.output] == ["message"]
    assert response.output_text == "And now?"


def test_a_stream_has_it_first(thinker_http: httpx.Client) -> None:
    answer = thinker_http.post(
        "/v1/responses", json=body(*TALK, LAST, stream=True, **manage_context(500))
    )
    events = strict_events(answer)

    assert [event.type for event in events[:5]] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_item.added",
    ]
    end = strict_end(answer)
    assert end.output_text == read_context(end)
    replayed = thinker_http.get(f"/v1/responses/{end.id}", params={"stream": True})
    assert named_events(replayed) == named_events(answer)


def test_without_a_threshold_a_prompt_without_room_is_compacted(
    thinker_http: httpx.Client, made: Made
) -> None:
    too_long = [*TALK * 4, LAST]
    refused = thinker_http.post("/v1/responses", json=body(*too_long))
    assert read_error(refused)["code"] == "context_length_exceeded"
    assert made(body(*too_long, **manage_context(None))).output_text.endswith("And now?")


def test_the_users_message_before_the_calls_stays(made: Made) -> None:
    response = made(body(*TALK, LAST, call("a"), output("a", "an owl"), **manage_context(500)))
    text = read_context(response)
    assert text.endswith("[End of the summary]\n\nAnd now?")


@pytest.mark.parametrize("way", WAYS)
def test_the_next_turn_continues_from_the_compaction(thinker_http: httpx.Client, way: Way) -> None:
    with httpx.Client(base_url=f"{thinker_http.base_url}/v1/", timeout=None) as http:
        send: Send = way(http)
        first = send(DEVELOPER, *TALK, LAST, model="parrot", **manage_context(500))
        second = send(message("user", "More"), model="parrot")
    text = CONTEXT.unpack(first["output"][0]["encrypted_content"])

    context = [
        DEVELOPER,
        message("user", text),
        message("assistant", text),
        message("user", "More"),
    ]
    counted = thinker_http.post("/v1/responses/input_tokens", json=body(*context)).json()
    assert [item["type"] for item in second["output"]] == ["message"]
    assert second["usage"]["input_tokens"] == counted["input_tokens"]


def test_a_summary_is_summarised_again_with_the_users_last_message(made: Made) -> None:
    earlier = compaction(text_for_model("A summary.", "First?"))
    response = made(body(earlier, call("a"), output("a", "an owl " * 50), **manage_context(300)))
    text = read_context(response)
    assert "A summary." in text and text.endswith("[End of the summary]\n\nFirst?")


def test_all_before_it_is_forgotten_but_leading_system_messages() -> None:
    given = [
        DEVELOPER,
        *TALK,
        call("a"),
        output("a"),
        compaction("Context."),
        message("assistant", "Yes."),
        LAST,
    ]
    shown = [each.fields for each in read_messages(read_input(given), "You are.")]
    assert shown == [
        message("system", "You are."),
        DEVELOPER,
        message("user", "Context."),
        message("assistant", "Yes."),
        LAST,
    ]


def test_a_call_that_is_forgotten_has_no_output_any_more() -> None:
    with pytest.raises(
        InvalidRequest,
        match=r"input\[2\]\.call_id must be the call_id of a function_call before it",
    ):
        read_messages(read_input([call("a"), compaction("Context."), output("a")]), None)


def test_counting_leaves_it_as_it_is(thinker_http: httpx.Client) -> None:
    counts = [
        thinker_http.post("/v1/responses/input_tokens", json=body(*TALK, LAST, **fields)).json()[
            "input_tokens"
        ]
        for fields in ({}, manage_context(500))
    ]
    assert counts[0] == counts[1] > 500
