"""The chat works with other servers, although they lack fields or use them otherwise."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ouzel.client.base import ApiFailure
from ouzel.client.http_client import HttpClient
from ouzel.terminal_chat.chat_api import ChatApi
from ouzel.terminal_chat.chat_error import ChatError
from ouzel.terminal_chat.chat_setup import choose_model
from ouzel.terminal_chat.loop_thread import LoopThread
from tests.client.canned_server import Answers, canned_server, event_stream, json_answer

TEXT = '{"choices": [{"delta": {"content": "Hi"}, "finish_reason": null}]}'
END = '{"choices": [{"delta": {}, "finish_reason": "stop"}]}'
USAGE = '{"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}'
REFUSED = json_answer("400 Bad Request", '{"error": {"message": "metadata is required"}}')
ABSENT = json_answer("404 Not Found", "{}")


@contextmanager
def asked(answer: Answers) -> Iterator[ChatApi]:
    with LoopThread() as loop, loop.entered(canned_server(answer)) as server:
        client = HttpClient(server.url)
        try:
            yield ChatApi(client, loop)
        finally:
            loop.run(client.close())


def read_content(api: ChatApi) -> str:
    with api.answer({}) as stream:
        return "".join(piece.content for piece in stream)


@pytest.mark.parametrize("end", [(END,), (END, "[DONE]"), (USAGE, "[DONE]")])
def test_an_answer_ends_at_each_servers_end_mark(end: tuple[str, ...]) -> None:
    with asked(event_stream(TEXT, *end)) as api:
        assert read_content(api) == "Hi"


@pytest.mark.parametrize(
    "answer", [event_stream(TEXT), b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>"]
)
def test_an_answer_that_ends_without_a_reason_has_broken_off(answer: bytes) -> None:
    with asked(answer) as api, pytest.raises(ApiFailure, match="broke off"):
        read_content(api)


def test_another_thing_at_the_path_of_our_check_says_nothing() -> None:
    with asked(lambda path, body: REFUSED if path.endswith("/render") else ABSENT) as api:
        assert not api.check({"temperature": 1})


def test_a_named_model_needs_no_list_of_models() -> None:
    with asked(ABSENT) as api:
        assert choose_model(api, "owl") == "owl"
        with pytest.raises(ChatError, match="must be named"):
            choose_model(api, "")


@pytest.mark.parametrize(
    ("capabilities", "chosen"),
    [('["embedding", "rerank"]', "owl"), ('["completion", "chat"]', "wren"), ('{"a": 1}', "wren")],
)
def test_the_first_model_that_answers_chats_is_chosen(capabilities: str, chosen: str) -> None:
    models = f'[{{"id": "wren", "capabilities": {capabilities}}}, {{"id": "owl"}}]'
    with asked(json_answer("200 OK", f'{{"data": {models}}}')) as api:
        assert choose_model(api, "") == chosen
        assert choose_model(api, "wren") == "wren"
