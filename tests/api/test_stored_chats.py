"""Chats with `store: true` are stored with their messages, and a client finds only its own."""

import json
import logging
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import openai
import pytest
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionContentPartTextParam,
    ChatCompletionDeleted,
    ChatCompletionMessageParam,
    ChatCompletionStoreMessage,
)

from ouzel.config import ServerConfig
from tests.api.requests import Json, chat, read_error, read_events, wait_until
from tests.api.responses.thinking import thinking_server
from tests.api.serving import RunningServer, running_server

PATH = "/v1/chat/completions"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "responses.sqlite3"


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[RunningServer]:
    """Yields a server whose model repeats the user's message, reasoning and calls included."""
    with thinking_server(f"sqlite:///{file}", step_s=0.001) as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def say(client: openai.OpenAI, said: str, **metadata: str) -> ChatCompletion:
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": said}]
    return create(client, messages, **metadata)


def create(
    client: openai.OpenAI, messages: list[ChatCompletionMessageParam], **metadata: str
) -> ChatCompletion:
    return client.chat.completions.create(
        model="parrot", messages=messages, store=True, metadata=metadata
    )


def store_chat(http: httpx.Client, said: str = "Hi", **fields: object) -> str:
    answer = http.post(PATH, json=chat(said, store=True, **fields))
    assert answer.status_code == 200, answer.text
    if fields.get("stream"):
        return str(json.loads(read_events(answer)[0])["id"])
    return str(answer.json()["id"])


def read_stored(http: httpx.Client, chat_id: str, path: str = PATH) -> Json:
    stored: Json = http.get(f"{path}/{chat_id}").raise_for_status().json()
    return stored


def count_chats(http: httpx.Client) -> int:
    listed: list[Json] = http.get(PATH, params={"limit": 100}).json()["data"]
    return len(listed)


def test_a_client_stores_lists_changes_and_deletes_chats(client: openai.OpenAI) -> None:
    chats = client.chat.completions
    first = say(client, "Hello", topic="birds", run="1")
    second = say(client, "Hello again", topic="birds", run="2")

    stored = chats.retrieve(first.id)
    ChatCompletion.model_validate(stored.to_dict(), strict=True)
    assert stored.metadata == {"topic": "birds", "run": "1"}
    for name in ("id", "created", "model", "choices", "usage", "system_fingerprint"):
        assert getattr(stored, name) == getattr(first, name), name

    of_both = chats.list(metadata={"topic": "birds"}, order="desc", limit=1)
    assert [each.id for each in of_both] == [second.id, first.id]  # follows the pages
    assert [each.id for each in chats.list(metadata={"topic": "birds", "run": "2"})] == [second.id]
    assert [each.id for each in chats.list(model="nothing")] == []
    assert {first.id, second.id} <= {each.id for each in chats.list(model="org/parrot")}

    changed = chats.update(first.id, metadata={"topic": "ouzels"})
    assert (changed.metadata, changed.choices) == ({"topic": "ouzels"}, first.choices)
    assert [each.id for each in chats.list(metadata={"topic": "ouzels"})] == [first.id]

    deleted = chats.delete(first.id)
    assert deleted == ChatCompletionDeleted(
        id=first.id, deleted=True, object="chat.completion.deleted"
    )
    for attempt in (chats.retrieve, chats.delete, chats.messages.list):
        with pytest.raises(openai.NotFoundError, match=first.id):
            attempt(first.id)
    with pytest.raises(openai.NotFoundError, match=first.id):
        chats.update(first.id, metadata={})


def test_the_messages_of_a_request_are_listed_with_their_parts(client: openai.OpenAI) -> None:
    parts: list[ChatCompletionContentPartTextParam] = [
        {"type": "text", "text": "What is "},
        {"type": "text", "text": "this?"},
    ]
    messages: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": parts, "name": "Ada"},
        {"role": "assistant", "content": "An ouzel."},
        {"role": "user", "content": "Sure?"},
    ]
    completion = create(client, messages)
    listed = client.chat.completions.messages.list(completion.id, limit=3)
    assert listed.has_more
    found = list(listed)
    assert all(isinstance(each, ChatCompletionStoreMessage) for each in found)
    assert [each.role for each in found] == ["system", "user", "assistant", "user"]
    assert [each.content for each in found] == [
        "Be brief.",
        "What is this?",
        "An ouzel.",
        "Sure?",
    ]
    assert [each.id for each in found] == [f"{completion.id}-{number}" for number in range(4)]
    assert found[1].to_dict()["name"] == "Ada"
    assert found[1].to_dict()["content_parts"] == parts
    assert found[0].content_parts is None and found[0].refusal is None
    backwards = client.chat.completions.messages.list(completion.id, order="desc", limit=1)
    assert [each.id for each in backwards] == [each.id for each in reversed(found)]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"n": 2},
        {"stop": "l"},
        {"logprobs": True, "top_logprobs": 2},
        {"return_token_ids": True, "prompt_logprobs": 1},
        {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    ],
)
def test_a_stream_is_stored_as_the_whole_answer_would_be(http: httpx.Client, fields: Json) -> None:
    whole_fields = {name: fields[name] for name in fields if name != "stream_options"}
    whole = read_stored(http, store_chat(http, "Hello", **whole_fields))
    streamed = read_stored(http, store_chat(http, "Hello", stream=True, **fields))
    for changing in ("id", "created", "request_id", "seed", "usage"):
        assert whole.pop(changing) and streamed.pop(changing)
    assert streamed == whole


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_and_calls_are_stored(
    http: httpx.Client, client: openai.OpenAI, stream: bool
) -> None:
    said = 'Hm.</think>\nYes.<tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call>'
    tool = {"type": "function", "function": {"name": "look"}}
    chat_id = store_chat(http, f"<think>{said}", tools=[tool], stream=stream)
    [choice] = client.chat.completions.retrieve(chat_id).choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls is not None
    [call] = choice.message.tool_calls
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("look", {"at": 1})
    assert choice.message.content == "Yes."
    assert choice.message.to_dict()["reasoning_content"] == "Hm."


def test_a_stored_chat_has_the_settings_of_its_request(http: httpx.Client) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    fields: Json = {
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "user": "ada",
        "tools": [tool],
        "tool_choice": "none",
        "response_format": {"type": "text"},
    }
    answer = http.post(PATH, json=chat("Hi", store=True, **fields))
    stored = read_stored(http, answer.json()["id"])
    assert stored["input_user"] == "ada"
    assert {name: stored[name] for name in fields.keys() - {"user"}} == {
        name: fields[name] for name in fields.keys() - {"user"}
    }
    assert stored["request_id"] == answer.headers["x-request-id"]
    assert stored["metadata"] == {}


@pytest.mark.parametrize("fields", [{}, {"store": False}, {"store": None}])
@pytest.mark.parametrize("stream", [False, True])
def test_nothing_is_stored_unless_the_request_asks_for_it(
    http: httpx.Client, fields: Json, stream: bool
) -> None:
    before = count_chats(http)
    answer = http.post(PATH, json=chat("Hi", stream=stream, metadata={"a": "b"}, **fields))
    assert answer.status_code == 200
    assert count_chats(http) == before


def test_a_chat_that_is_only_rendered_is_not_stored(http: httpx.Client) -> None:
    before = count_chats(http)
    assert http.post(f"{PATH}/render", json=chat("Hi", store=True)).status_code == 200
    assert count_chats(http) == before


def test_a_chat_that_fails_is_not_stored(http: httpx.Client) -> None:
    before = count_chats(http)
    assert http.post(PATH, json=chat("abc|fail|", store=True)).status_code == 500
    events = read_events(http.post(PATH, json=chat("abc|fail|", store=True, stream=True)))
    assert "error" in events[-2] or "error" in events[-1]
    assert count_chats(http) == before


def test_a_chat_whose_client_leaves_is_not_stored(
    server: RunningServer, http: httpx.Client
) -> None:
    before = count_chats(http)
    body = chat("x" * 3000, store=True, stream=True)
    with http.stream("POST", PATH, json=body) as answer:
        next(answer.iter_bytes())
    wait_until(lambda: server.engine.num_unfinished == 0)
    assert count_chats(http) == before


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"order": "newest"}, "order"),
        ({"after": "nothing"}, "after"),
    ],
)
def test_a_wrong_query_is_refused(http: httpx.Client, query: dict[str, str], param: str) -> None:
    chat_id = store_chat(http)
    for path in (PATH, f"{PATH}/{chat_id}/messages"):
        answer = http.get(path, params=query)
        assert answer.status_code == (404 if param == "after" else 400), answer.text
        assert read_error(answer)["param"] == param


def test_an_unknown_parameter_is_logged_and_a_filter_is_not(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="ouzel"):
        http.get(PATH, params={"metadata[colour]": "red", "colour[a]": "b", "metadata": "x"})
    [line] = [each.getMessage() for each in caplog.records if "ignored" in each.getMessage()]
    assert line == "ignored fields: 'colour[a]', 'metadata'"


def test_the_labels_of_a_request_have_limits(http: httpx.Client) -> None:
    chat_id = store_chat(http)
    labels = {"a": "x" * 513}
    for answer in (
        http.post(PATH, json=chat("Hi", store=True, metadata=labels)),
        http.post(f"{PATH}/{chat_id}", json={"metadata": labels}),
    ):
        assert (answer.status_code, read_error(answer)["param"]) == (400, "metadata.a")
    assert read_error(http.post(f"{PATH}/{chat_id}", json={}))["param"] == "metadata"
    assert http.post(f"{PATH}/{chat_id}", json={"metadata": None}).json()["metadata"] == {}


# Other keys


def test_a_key_finds_only_its_own_chats(tmp_path: Path) -> None:
    keys = ServerConfig(api_key=("one", "two"))
    with running_server(config=keys, store_url=f"sqlite:///{tmp_path}/s.sqlite3") as server:
        http, other = (
            httpx.Client(
                base_url=server.url, timeout=None, headers={"Authorization": f"Bearer {key}"}
            )
            for key in keys.api_key
        )
        with http, other:
            chat_id = store_chat(http, metadata={"a": "b"})
            assert count_chats(http) == 1
            assert other.get(PATH).json()["data"] == []
            for answer in (
                other.get(f"{PATH}/{chat_id}"),
                other.get(f"{PATH}/{chat_id}/messages"),
                other.post(f"{PATH}/{chat_id}", json={"metadata": {}}),
                other.delete(f"{PATH}/{chat_id}"),
            ):
                assert answer.status_code == 404
                assert read_error(answer)["message"] == (
                    f"Chat completion with id '{chat_id}' not found."
                )
            assert read_stored(http, chat_id)["metadata"] == {"a": "b"}


# Servers without a store


@pytest.mark.parametrize("profile", ["openai", "lmi", "ovms"])
def test_a_server_that_stores_nothing_refuses_to_store(profile: str) -> None:
    config = ServerConfig(profile=profile)  # type: ignore[arg-type]
    with running_server(config=config) as server, server.client() as http:
        for stream in (False, True):
            refused = http.post(PATH, json=chat("Hi", store=True, stream=stream))
            assert refused.status_code in (400, 424)
            assert "store must be false: this server stores nothing, given true" in refused.text
            assert http.post(PATH, json=chat("Hi", store=False, stream=stream)).status_code == 200
        if profile != "ovms":  # it has no list
            listed = http.get(PATH).json()
            assert (listed["data"], listed["has_more"]) == ([], False)
        assert http.get(f"{PATH}/chatcmpl-1").status_code == 404
        assert http.get(f"{PATH}/chatcmpl-1/messages").status_code == 404
        assert http.delete(f"{PATH}/chatcmpl-1").status_code == 404


# Profiles


@pytest.mark.parametrize(
    ("config", "path"),
    [
        (ServerConfig(profile="ovms"), "/v3/chat/completions"),
        (ServerConfig(profile="ovms", verbose_response=True), "/v3/chat/completions"),
        (ServerConfig(profile="lmi"), PATH),
        (ServerConfig(profile="lmi"), "/invocations"),
        (ServerConfig(), "/v3/chat/completions"),
        (ServerConfig(), "/v3/v1/chat/completions"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_every_profile_stores_chats_in_the_form_of_openai(
    tmp_path: Path, config: ServerConfig, path: str, stream: bool
) -> None:
    url = f"sqlite:///{tmp_path}/store.sqlite3"
    with running_server(config=config, store_url=url) as server, server.client() as http:
        body = chat("Hi", store=True, stream=stream, metadata={"a": "b"}, max_tokens=9)
        answer = http.post(path, json=body)
        assert answer.status_code == 200, answer.text
        found = re.search(r"chatcmpl-[\w-]+", answer.text)
        assert found is not None
        stored = read_stored(http, found[0], "/v3/chat/completions")
        if config.profile != "ovms":  # it has no list
            assert http.get(PATH).json()["data"] == [stored]
    completion = ChatCompletion.model_validate(stored, strict=True)
    [choice] = completion.choices
    assert (choice.message.content, choice.finish_reason) == ("Hi", "stop")
    assert choice.message.tool_calls is None
    assert (completion.metadata, completion.model) == ({"a": "b"}, "org/parrot")


# A store that cannot be used


def read_text(answer: httpx.Response, *, stream: bool) -> str:
    if stream:
        events = read_events(answer)
        assert events[-1] == "[DONE]"
        return "".join(events)
    return answer.text


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_whole_although_it_cannot_be_stored(
    http: httpx.Client, file: Path, caplog: pytest.LogCaptureFixture, stream: bool
) -> None:
    before = count_chats(http)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute(
            "CREATE TRIGGER broken BEFORE INSERT ON chat_messages BEGIN SELECT json('no'); END"
        )
        with caplog.at_level(logging.ERROR, logger="ouzel"):
            answer = http.post(PATH, json=chat("Hello", store=True, stream=stream))
            wait_until(lambda: "is not stored" in caplog.text)
        connection.execute("DROP TRIGGER broken")
    assert answer.status_code == 200
    chat_id = json.loads(read_events(answer)[0])["id"] if stream else answer.json()["id"]
    read_text(answer, stream=stream)
    assert f"the chat completion {chat_id} is not stored: the store cannot" in caplog.text
    assert count_chats(http) == before
    assert read_stored(http, store_chat(http))


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_does_not_wait_for_a_locked_store(
    http: httpx.Client, file: Path, stream: bool
) -> None:
    """The lock is released after the answer; an answer that waited for it would never come."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        chat_id = store_chat(http, stream=stream)
        connection.execute("ROLLBACK")
    assert read_stored(http, chat_id)["id"] == chat_id


def test_a_stopping_server_stores_what_it_has_answered(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.sqlite3"
    with (
        running_server(store_url=url) as server,
        server.client() as http,
        closing(sqlite3.connect(tmp_path / "store.sqlite3", isolation_level=None)) as lock,
    ):
        lock.execute("BEGIN IMMEDIATE")
        chat_id = store_chat(http)
        lock.execute("ROLLBACK")
    with running_server(store_url=url) as server, server.client() as http:
        assert read_stored(http, chat_id)["id"] == chat_id
