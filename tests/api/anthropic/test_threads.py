"""A request of a thread has only the new messages, and the model reads the whole conversation."""

from collections.abc import Iterator
from functools import partial

import httpx
import pytest

from ouzel.api.anthropic.errors import ThreadUnsupported
from ouzel.api.anthropic.messages import Messages
from ouzel.api.anthropic.threads import HeldConversation, HeldConversations, start_conversation
from ouzel.config import LimitsConfig, ServerConfig
from ouzel.errors import InvalidRequest
from tests.api.anthropic.exchanges import (
    CALL,
    LOOK,
    PATH,
    Json,
    build_request,
    fold_events,
    last_prompt,
    read_error,
    read_events,
)
from tests.api.serving import running_server

CREATE: Json = {"type": "create"}


def continue_thread(message: Json) -> Json:
    return {"type": "continue", "previous_message_id": message["id"]}


def said(text: str) -> list[Json]:
    return [{"role": "user", "content": text}]


def post_message(http: httpx.Client, text: str, thread: Json | None, **fields: object) -> Json:
    response = http.post(PATH, json=build_request(text, thread=thread, **fields))
    assert response.status_code == 200, response.text
    message: Json = response.json()
    return message


def read_refusal(response: httpx.Response) -> tuple[int, str, Json]:
    """Returns the status, the message and the details of an error; clients read the details."""
    error = response.json()["error"]
    return response.status_code, error["message"], error["details"]


def test_a_turn_is_read_after_all_that_was_said_before_it(http: httpx.Client) -> None:
    fields: Json = {"system": "Be kind.", "tools": [LOOK], "thinking": {"type": "adaptive"}}
    first = post_message(http, f"<think>hm</think>I look.\n{CALL}", CREATE, **fields)
    call = first["content"][-1]["id"]
    result: Json = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call, "content": "blue sky"}],
    }
    second = post_message(
        http, "", continue_thread(first), messages=[result], thinking={"type": "adaptive"}
    )
    post_message(
        http, "", continue_thread(second), messages=said("Thanks"), thinking={"type": "adaptive"}
    )
    in_a_thread = last_prompt()

    messages = [
        *said(f"<think>hm</think>I look.\n{CALL}"),
        {"role": "assistant", "content": first["content"]},
        result,
        {"role": "assistant", "content": second["content"]},
        *said("Thanks"),
    ]
    post_message(http, "", None, messages=messages, **fields)
    assert in_a_thread == last_prompt()


def test_a_call_without_its_result_is_named_by_the_id_that_the_client_knows(
    http: httpx.Client,
) -> None:
    first = post_message(http, CALL, CREATE, tools=[LOOK])
    text = read_error(
        http.post(PATH, json=build_request("", thread=continue_thread(first), messages=[]))
    )[2]
    assert text.endswith(
        f'must be followed by the result of the tool call "{first["content"][-1]["id"]}"'
    )


def test_a_streamed_message_is_held_as_a_whole_one(http: httpx.Client) -> None:
    message = fold_events(
        read_events(http.post(PATH, json=build_request("Hello", thread=CREATE, stream=True)))
    )
    post_message(http, "", continue_thread(message), messages=said("Go on"))
    assert "user\nHello<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>" in last_prompt()
    assert last_prompt().count("Go on") == 1


def test_the_fields_of_a_turn_are_its_own_but_system_and_tools(http: httpx.Client) -> None:
    first = post_message(http, "Hello", CREATE, system="Be kind.", max_tokens=2)
    second = post_message(http, "Again", continue_thread(first), system="Be kind.", max_tokens=400)
    assert (first["stop_reason"], second["stop_reason"]) == ("max_tokens", "end_turn")
    for field, value in (("system", "Be rude."), ("tools", [LOOK])):
        response = http.post(
            PATH, json=build_request("Go on", thread=continue_thread(second), **{field: value})
        )
        status, message, details = read_refusal(response)
        assert (status, details) == (400, {"error_code": "thread_fingerprint_mismatch"})
        assert message.startswith(
            f"{field} must be left out or be the same as at the thread's creation, given "
        )


def test_system_and_tools_that_are_null_are_left_out(http: httpx.Client) -> None:
    first = post_message(http, "Hello", CREATE, system="Be kind.", tools=[LOOK])
    post_message(http, "Go on", continue_thread(first), system=None, tools=None)
    assert "Be kind." in last_prompt() and "Looks somewhere." in last_prompt()


def test_a_message_is_continued_once(http: httpx.Client) -> None:
    first = post_message(http, "Hello", CREATE)
    post_message(http, "Go on", continue_thread(first))
    status, message, details = read_refusal(
        http.post(PATH, json=build_request("Go on", thread=continue_thread(first)))
    )
    assert (status, details) == (400, {"error_code": "thread_already_continued"})
    assert message.startswith("thread.previous_message_id must be the newest message of its thread")


def test_a_turn_that_fails_leaves_the_thread_as_it_was(http: httpx.Client) -> None:
    first = post_message(http, "Hello", CREATE)
    failed = http.post(
        PATH, json=build_request("Go on", thread=continue_thread(first), temperature=9)
    )
    assert read_error(failed)[2].startswith("temperature must be <= 2.0")
    post_message(http, "Go on", continue_thread(first))


def test_errors_name_the_messages_that_the_client_sent(http: httpx.Client) -> None:
    first = post_message(http, "Hello", CREATE)
    result = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "x"}
    for content, path in (
        ([result], "messages[0].content[0].tool_use_id"),
        (7, "messages[0].content"),
    ):
        fields = build_request(
            "", thread=continue_thread(first), messages=[{"role": "user", "content": content}]
        )
        assert read_error(http.post(PATH, json=fields))[2].startswith(f"{path} must be")


def test_without_new_messages_the_last_answer_is_continued(http: httpx.Client) -> None:
    first = post_message(http, "Hello, you", CREATE, max_tokens=5)
    post_message(http, "", continue_thread(first), messages=[])
    assert last_prompt().endswith("</think>\n\nHello")


@pytest.mark.parametrize(
    ("thread", "message"),
    [
        ({"type": "x"}, 'thread.type must be one of "create", "continue"'),
        ({"type": "continue"}, "thread.previous_message_id is required"),
        (
            {"type": "continue", "previous_message_id": 1},
            "thread.previous_message_id must be a string",
        ),
        ("create", "thread must be an object"),
    ],
    ids=str,
)
def test_a_thread_of_another_form_is_refused(
    http: httpx.Client, thread: object, message: str
) -> None:
    text = read_error(http.post(PATH, json=build_request("Hi", thread=thread)))[2]
    assert text.startswith(message), text


def test_a_message_that_is_not_held_is_not_found(http: httpx.Client) -> None:
    unheld = post_message(http, "Hello", None)
    status, message, details = read_refusal(
        http.post(PATH, json=build_request("Go on", thread=continue_thread(unheld)))
    )
    assert (status, details) == (404, {"error_code": "thread_not_found"})
    assert message.startswith(
        "thread.previous_message_id must be the id of a message that is held here, given "
    )


def test_tokens_are_not_counted_of_threads(http: httpx.Client) -> None:
    """The client repeats the request without the fields in `unsupported`."""
    status, message, details = read_refusal(
        http.post(f"{PATH}/count_tokens", json=build_request("Hi", thread=CREATE))
    )
    assert (status, details) == (
        400,
        {"error_code": "thread_unsupported_request", "unsupported": ["thread"]},
    )
    assert message.startswith("thread must not be given")


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx.Client]:
    with (
        running_server(config=ServerConfig(api_key=("sk-one", "sk-two"))) as server,
        server.client() as http,
    ):
        yield http


def test_a_key_never_goes_on_with_the_thread_of_another(guarded: httpx.Client) -> None:
    one, two = {"x-api-key": "sk-one"}, {"x-api-key": "sk-two"}
    first = guarded.post(PATH, json=build_request("Hello", thread=CREATE), headers=one).json()
    go = build_request("Go on", thread=continue_thread(first))
    assert read_refusal(guarded.post(PATH, json=go, headers=two))[2] == {
        "error_code": "thread_not_found"
    }
    assert guarded.post(PATH, json=go, headers=one).status_code == 200
    assert read_refusal(guarded.post(PATH, json=go, headers=two))[2] == {
        "error_code": "thread_not_found"
    }


def test_a_model_and_its_adapters_hold_their_conversations_within_one_bound() -> None:
    """Model and adapters share one bound, so each of them finds the conversation."""
    adaptable = "tests.api.test_adapters:create_adaptable"
    with (
        running_server({"at_start": "a b"}, engine_factory=adaptable) as server,
        server.client() as http,
    ):
        # The parser of the test server fails at two characters, which a random token may be.
        short = {"max_tokens": 1, "temperature": 0}
        first = post_message(http, "Hello", CREATE, **short)
        second = post_message(http, "Go on", continue_thread(first), model="a", **short)
        post_message(http, "Go on", continue_thread(second), model="b", **short)


def conversation(num_bytes: int) -> HeldConversation:
    return start_conversation({"messages": said("x" * num_bytes)}, None)


def test_the_oldest_conversations_go_first_and_the_newest_stays() -> None:
    held = HeldConversations(max_bytes=100_000)
    for number in range(3):
        held.add(f"msg_{number}", conversation(40_000), previous_id=None)
    held.find("msg_1", None)
    held.find("msg_2", None)
    with pytest.raises(InvalidRequest, match="held here"):
        held.find("msg_0", None)
    held.add("msg_3", conversation(99_990), previous_id="msg_2")
    held.find("msg_3", None)
    with pytest.raises(InvalidRequest, match="continued already"):
        held.find("msg_2", None)


def test_many_short_conversations_are_bounded_too() -> None:
    held = HeldConversations(max_bytes=100_000)
    for number in range(200):
        held.add(f"msg_{number}", conversation(1), previous_id=None)
    with pytest.raises(InvalidRequest, match="held here"):
        held.find("msg_100", None)


def test_a_conversation_that_is_too_long_to_be_held_can_go_on_without_a_thread() -> None:
    """Prompts contain no thinking of other servers, so the context does not limit its length."""
    foreign = {"type": "thinking", "thinking": "x" * 2000, "signature": "x"}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [foreign]},
        *said("Go on"),
    ]
    with running_server() as server:
        read_messages = partial(Messages, server.model, LimitsConfig())
        body = build_request("", messages=messages, thread=CREATE)
        read_messages(HeldConversations(max_bytes=10_000), None).prepare(body, 0.0)
        with pytest.raises(
            ThreadUnsupported, match="a conversation of more than 2000 bytes, given"
        ):
            read_messages(HeldConversations(max_bytes=2000), None).prepare(body, 0.0)


def test_a_body_is_as_long_as_the_conversation_that_it_continues() -> None:
    held = HeldConversations()
    held.add("msg_1", conversation(40_000), previous_id=None)
    bodies = {b'{"thread": {"type": "continue", "previous_message_id": "msg_1"}}': 40_000}
    text = b'"messages": [{"role": "user", "content": "%s"}]' % (b"x" * 4000)
    bodies |= {
        b'{%s, "thread": {"previous_message_id" : "msg_1", "type": "continue"}}' % text: 40_000
    }
    bodies |= dict.fromkeys(
        (b"{%s}" % text, b'{%s, "thread": {"previous_message_id": "msg_2"}}' % text), 0
    )
    bodies |= dict.fromkeys(
        (b"{", b"[]", b"{}", b'{"thread": 1}', b'{"thread": {"type": "create"}}'), 0
    )
    for body, num_bytes in bodies.items():
        assert num_bytes <= held.num_held_bytes(body) <= num_bytes * 1.1
