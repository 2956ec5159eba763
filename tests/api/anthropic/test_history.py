"""The prompt contains the messages, the system prompt and the tools in the right order."""

import re

import httpx
import pytest

from ouzel.api.anthropic.call_ids import restore_call_id, show_call_id
from tests.api.anthropic.exchanges import (
    CALL,
    LOOK,
    OTHER_CALL,
    PATH,
    REST,
    SAYINGS,
    Json,
    build_request,
    last_prompt,
    read_error,
)
from tests.api.serving import running_server

THINKING = {"type": "adaptive"}


def post_message(http: httpx.Client, *messages: Json, **fields: object) -> Json:
    body = {"model": "parrot", "max_tokens": 400, "messages": messages, **fields}
    response = http.post(PATH, json=body)
    assert response.status_code == 200, response.text
    message: Json = response.json()
    return message


def user(*blocks: Json | str) -> Json:
    return {
        "role": "user",
        "content": [
            {"type": "text", "text": block} if isinstance(block, str) else block for block in blocks
        ],
    }


def result(tool_use_id: object, content: object, **fields: object) -> Json:
    return {"type": "tool_result", "tool_use_id": tool_use_id, "content": content, **fields}


def test_a_turn_with_tools_goes_on_where_it_was(http: httpx.Client) -> None:
    """The next prompt repeats the model's output exactly, thinking and calls included."""
    first = user(SAYINGS["thinking, text and calls"])
    fields: Json = {"tools": [LOOK, REST], "thinking": THINKING, "system": "Look, then rest."}
    message = post_message(http, first, **fields)
    before = last_prompt()
    calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]

    results = [result(calls[0], "blue sky"), result(calls[1], [{"type": "text", "text": "rested"}])]
    post_message(
        http, first, {"role": "assistant", "content": message["content"]}, user(*results), **fields
    )

    assert last_prompt().startswith(before)
    written = f"<think>\nlet me see\n</think>\n\nI look.\n\n{CALL}\n{OTHER_CALL}<|im_end|>"
    after = last_prompt().removeprefix(before)
    assert after.startswith(written)
    assert "blue sky" in after and "rested" in after


def test_results_of_tools_come_before_the_users_text_beside_them(http: httpx.Client) -> None:
    call = {"type": "tool_use", "id": "toolu_01A", "name": "look", "input": {}}
    post_message(
        http,
        user("Hi"),
        {"role": "assistant", "content": [call]},
        user("And now?", result("toolu_01A", "blue")),
    )
    assert last_prompt().index("blue") < last_prompt().index("And now?")


def test_a_failed_tool_is_told_as_one(http: httpx.Client) -> None:
    call = {"type": "tool_use", "id": "toolu_01A", "name": "look", "input": {}}
    failed = user(result("toolu_01A", "no sky", is_error=True))
    post_message(http, user("Hi"), {"role": "assistant", "content": [call]}, failed, tools=[LOOK])
    assert "The tool failed.\nno sky" in last_prompt()


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "secret", "signature": "EqMBCkYIBxgCKkA="},
        {"type": "thinking", "thinking": "secret", "signature": "ouzel-thinking-1.AAAA"},
        {"type": "thinking", "thinking": "secret"},
        {"type": "redacted_thinking", "data": "secret"},
    ],
)
def test_thinking_of_another_server_is_left_out(http: httpx.Client, block: Json) -> None:
    said = [block, {"type": "text", "text": "Hello"}]
    post_message(http, user("Hi"), {"role": "assistant", "content": said}, user("Go on"))
    assert "Hello" in last_prompt() and "secret" not in last_prompt()


def test_messages_of_one_role_in_a_row_are_one(http: httpx.Client) -> None:
    said = ({"role": "assistant", "content": "A"}, {"role": "assistant", "content": "B"})
    post_message(http, user("Hi"), user("there"), *said, user("Go", "on"))
    assert last_prompt().count("<|im_start|>user") == 2
    assert "Hi\nthere<|im_end|>" in last_prompt() and "A\nB<|im_end|>" in last_prompt()


@pytest.mark.parametrize(
    "system",
    ["Be kind.", [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}]],
)
def test_a_system_prompt_is_a_text_or_blocks(http: httpx.Client, system: object) -> None:
    post_message(http, user("Hi"), system=system)
    assert last_prompt().startswith("<|im_start|>system\nBe kind.<|im_end|>")


def test_claude_codes_billing_header_is_no_instruction(http: httpx.Client) -> None:
    blocks = ["x-anthropic-billing-header: cc_version=2.1; cch=1a2b3;", "Be kind."]
    post_message(http, user("Hi"), system=[{"type": "text", "text": block} for block in blocks])
    assert last_prompt().startswith("<|im_start|>system\nBe kind.<|im_end|>")


def test_a_system_message_stays_in_its_place(http: httpx.Client) -> None:
    post_message(http, user("Hi"), {"role": "system", "content": "Be kind."})
    assert "<|im_start|>user\nHi<|im_end|>\n<|im_start|>system\nBe kind.<|im_end|>" in last_prompt()


def test_a_template_without_later_system_messages_has_the_user_say_them() -> None:
    template = (
        "{% for message in messages %}"
        "{% if message.role == 'system' and not loop.first %}{{ raise_exception('no') }}"
        "{% endif %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
        "<|im_start|>assistant\n"
    )
    with (
        running_server(chat_template=template, engine_factory="create_recording_parrot") as server,
        server.client() as http,
    ):
        post_message(http, user("Hi"), {"role": "system", "content": "Be kind."})
    assert "<|im_start|>user\nHi\n<system>\nBe kind.\n</system><|im_end|>" in last_prompt()


def test_documents_and_search_results_are_texts(http: httpx.Client) -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "All owls see."}
    found = {
        "type": "search_result",
        "source": "web",
        "title": "Owls",
        "content": [{"type": "text", "text": "They fly."}],
    }
    parts = {
        "type": "content",
        "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}],
    }
    post_message(
        http,
        user(
            {"type": "document", "source": source, "title": "On owls"},
            found,
            {"type": "document", "source": parts},
        ),
    )
    for text in ("On owls\nAll owls see.", "Owls\nweb\nThey fly.", "One.\nTwo."):
        assert text in last_prompt()


def test_tools_are_shown_with_their_examples(http: httpx.Client) -> None:
    post_message(
        http,
        user("Hi"),
        tools=[{**LOOK, "input_examples": [{"place": "down"}], "defer_loading": True}],
    )
    assert (
        '"examples": [{"place": "down"}]' in last_prompt() and "Looks somewhere." in last_prompt()
    )


@pytest.mark.parametrize(
    "kind", ["web_search_20250305", "code_execution_20250825", "tool_search_tool_regex_20251119"]
)
def test_tools_of_anthropics_servers_are_left_out_where_there_are_others(
    http: httpx.Client, kind: str
) -> None:
    hosted = {"type": kind, "name": "hosted"}
    servers = [{"type": "url", "url": "https://example.org", "name": "x"}]
    answer = http.post(PATH, json=build_request("Hi", tools=[hosted, LOOK], mcp_servers=servers))
    assert answer.headers["x-ouzel-warnings"] == (
        "mcp_servers was left out: this server runs no such tool; "
        f'tools[0] ("{kind}") was left out: this server runs no such tool'
    )
    assert "hosted" not in last_prompt() and '"look"' in last_prompt()
    status, kind_of_error, message = read_error(
        http.post(PATH, json=build_request("Hi", tools=[hosted]))
    )
    assert (status, kind_of_error) == (400, "invalid_request_error") and message.startswith(
        "tools[0].type must be one of"
    )
    _, _, message = read_error(http.post(PATH, json=build_request("Hi", mcp_servers=servers)))
    assert message == "mcp_servers must be empty: this server runs no such tool"


def test_ids_of_calls_are_read_back_as_the_parser_made_them() -> None:
    ids = ["call_" + "aB3" * 8, "functions.look:0", "a1b2c3d4e", "_", "wörld"]
    shown = [show_call_id(call_id) for call_id in ids]
    assert [restore_call_id(each) for each in shown] == ids
    assert all(re.fullmatch(r"toolu_[A-Za-z0-9_-]+", each) for each in shown)
    assert [
        restore_call_id(foreign) for foreign in ("toolu_01A", "toolu_own_!", "call_1", "toolu_own_")
    ] == [
        "toolu_01A",
        "toolu_own_!",
        "call_1",
        "toolu_own_",
    ]
