"""A server gets only the fields that it takes."""

import json

import pytest

from ouzel.bench.conversation import Conversation, user_turn
from ouzel.bench.endpoints import CHAT, COMPLETIONS, RESPONSES, Endpoint, Form
from ouzel.bench.target import Target, served_model, server_facts
from ouzel.client.base import ApiFailure
from ouzel.client.http_client import HttpClient
from tests.client.canned_server import CannedServer, canned_server, event_stream, json_answer

DONE = '{"choices": [{"delta": {"content": "a"}, "text": "a", "finish_reason": "stop"}]}'
ASKED = Conversation((user_turn("one", max_tokens=7, input_len=1),))
WITH_TOOLS = Conversation(ASKED.turns, ({"name": "f", "parameters": {"type": "object"}},))


def make_target(server: CannedServer, endpoint: Endpoint = CHAT, **extra: object) -> Target:
    return Target(HttpClient(server.url), endpoint, "m", Form(), extra)


async def accepted(*refused: str) -> tuple[Form, CannedServer]:
    """Returns the form that a server accepts, and the server, which refuses these fields."""

    def answer(_: str, body: bytes) -> bytes:
        bad = [field for field in refused if field in json.loads(body)]
        return json_answer("400 Bad Request", f'"no {bad[0]}"') if bad else event_stream(DONE)

    async with canned_server(answer) as server:
        target = make_target(server)
        try:
            return (await target.with_accepted_form(ASKED)).form, server
        finally:
            await target.client.close()


@pytest.mark.parametrize(
    ("refused", "form"),
    [
        ((), Form()),
        (("ignore_eos",), Form(ignores_eos=False)),
        (("stream_options",), Form(includes_usage=False)),
        (("ignore_eos", "stream_options"), Form(ignores_eos=False, includes_usage=False)),
        (("ignore_eos", "max_tokens"), Form(ignores_eos=False, max_completion_tokens=True)),
    ],
)
async def test_fields_that_are_refused_are_left_out(refused: tuple[str, ...], form: Form) -> None:
    assert (await accepted(*refused))[0] == form


async def test_a_refusal_that_no_form_avoids_is_reported_once() -> None:
    with pytest.raises(ApiFailure, match=r"^400: no model$"):
        await accepted("model", "ignore_eos")


async def test_a_final_refusal_is_reported_too() -> None:
    with pytest.raises(ApiFailure, match=r"^400: no ignore_eos; then 400: no temperature$"):
        await accepted("ignore_eos", "temperature")


async def test_a_failure_that_is_no_refusal_is_not_tried_again() -> None:
    async with canned_server(
        json_answer("401 Unauthorized", '{"error": {"message": "no key"}}')
    ) as server:
        target = make_target(server)
        with pytest.raises(ApiFailure, match="401: no key"):
            await target.with_accepted_form(ASKED)
        await target.client.close()
    assert len(server.bodies) == 1


async def asked(
    endpoint: Endpoint, conversation: Conversation = ASKED, **extra: object
) -> dict[str, object]:
    """Sends a request and returns the body that the server received."""
    async with canned_server(event_stream(DONE)) as server:
        target = make_target(server, endpoint, **extra)
        history = (
            {"role": "user", "content": "zero "},
            {"role": "assistant", "content": "nought "},
        )
        await target.ask(conversation.turns[0], history, conversation.tools)
        await target.client.close()
    body: dict[str, object] = json.loads(server.bodies[0])
    return body


async def test_bodies_of_chats_completions_and_responses() -> None:
    always = {"model": "m", "stream": True, "temperature": 0, "ignore_eos": True}
    messages = [
        {"role": "user", "content": "zero "},
        {"role": "assistant", "content": "nought "},
        {"role": "user", "content": "one"},
    ]
    usage = {"stream_options": {"include_usage": True}}
    assert await asked(CHAT) == always | usage | {"messages": messages, "max_tokens": 7}
    assert await asked(COMPLETIONS) == always | usage | {
        "prompt": "zero nought one",
        "max_tokens": 7,
    }
    assert await asked(RESPONSES) == always | {
        "input": messages,
        "max_output_tokens": 7,
        "store": False,
    }


async def test_fields_of_the_user_go_before_ours() -> None:
    body = await asked(CHAT, temperature=None, top_p=0.9, max_tokens=3)
    assert ("temperature" in body, body["top_p"], body["max_tokens"]) == (False, 0.9, 3)


@pytest.mark.parametrize("endpoint", [CHAT, RESPONSES], ids=lambda each: each.name)
async def test_a_tool_call_is_demanded_and_may_end(endpoint: Endpoint) -> None:
    body = await asked(endpoint, WITH_TOOLS)
    assert (body["tool_choice"], "ignore_eos" in body) == ("required", False)
    assert '"name": "f"' in json.dumps(body["tools"])


async def test_a_servers_own_description_may_be_malformed_utf_8() -> None:
    async with canned_server(
        json_answer("200 OK", '{"version": "~"}').replace(b"~", b"\xe9")
    ) as server:
        client = HttpClient(server.url)
        assert await server_facts(client, "m") == {}
        await client.close()


@pytest.mark.parametrize("body", ["{}", "[]", '{"data": []}', '{"data": [{"id": 1}]}', "no JSON"])
async def test_a_server_without_models_is_told_apart(body: str) -> None:
    async with canned_server(json_answer("200 OK", body)) as server:
        client = HttpClient(server.url)
        with pytest.raises(ApiFailure, match="name the model with --model"):
            await served_model(client)
        await client.close()
