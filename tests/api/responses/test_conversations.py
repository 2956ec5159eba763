"""Conversations and their items are created, listed, changed, deleted and refused."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import openai
import pytest

from ouzel.config import ServerConfig
from tests.api.requests import Json, read_error
from tests.api.responses.strict import strict_conversation, strict_item, strict_items
from tests.api.responses.test_input import call, message, output, reasoning
from tests.api.serving import RunningServer, running_server

USER: Json = message("user", "Hi")
TALK: list[Json] = [
    message("developer", "Be brief."),
    message("user", [{"type": "input_text", "text": "What is it?"}]),
    reasoning("hm", summary=("hm",)),
    message("assistant", "I look."),
    call("call_1"),
    output("call_1", [{"type": "input_text", "text": "an owl"}]),
    message("assistant", [{"type": "refusal", "refusal": "No."}]),
]


def create_conversation(http: httpx.Client, **body: object) -> str:
    return strict_conversation(http.post("/v1/conversations", json=body).text).id


def list_items(http: httpx.Client, conversation_id: str) -> list[Json]:
    """Returns all items of the conversation, the oldest first."""
    answer = http.get(
        f"/v1/conversations/{conversation_id}/items", params={"order": "asc", "limit": 100}
    )
    assert answer.status_code == 200
    data: list[Json] = json.loads(answer.text)["data"]
    return data


@pytest.mark.parametrize("prefix", ["/v1", "/v3", "/v3/v1"])
def test_a_conversation_is_made_found_labelled_and_deleted(
    thinker_http: httpx.Client, prefix: str
) -> None:
    made = strict_conversation(
        thinker_http.post(f"{prefix}/conversations", json={"metadata": {"a": "1"}}).text
    )
    path = f"{prefix}/conversations/{made.id}"
    assert made.metadata == {"a": "1"} and made.created_at > 1_700_000_000

    assert strict_conversation(thinker_http.get(path).text) == made
    labelled = strict_conversation(thinker_http.post(path, json={"metadata": {"b": "2"}}).text)
    assert labelled == strict_conversation(thinker_http.get(path).text)
    assert labelled.metadata == {"b": "2"}
    assert strict_conversation(thinker_http.post(path, json={"metadata": None}).text).metadata == {}

    assert thinker_http.delete(path).json() == {
        "id": made.id,
        "object": "conversation.deleted",
        "deleted": True,
    }
    assert thinker_http.get(path).status_code == thinker_http.delete(path).status_code == 404


def test_items_come_back_complete_and_in_order(thinker_http: httpx.Client) -> None:
    conversation_id = create_conversation(thinker_http, items=TALK[:3])
    path = f"/v1/conversations/{conversation_id}/items"
    added = strict_items(thinker_http.post(path, json={"items": TALK[3:]}).text)
    listed = strict_items(thinker_http.get(path, params={"order": "asc"}).text)
    assert listed.data[3:] == added.data
    assert [item.type for item in listed.data] == [item.get("type", "message") for item in TALK]
    assert len({item.id for item in listed.data}) == len(TALK)
    for item in listed.data:
        assert strict_item(thinker_http.get(f"{path}/{item.id}").text) == item


def test_items_are_listed_page_by_page(thinker_client: openai.OpenAI) -> None:
    items = [message("user", str(number)) for number in range(5)]
    # the items have the form that clients send
    conversation = thinker_client.conversations.create(items=items)  # type: ignore[arg-type]
    for order, expected in (("asc", "01234"), ("desc", "43210")):
        listed = thinker_client.conversations.items.list(
            conversation.id,
            order=order,  # type: ignore[arg-type]
            limit=2,
        )
        assert [len(page.data) for page in listed.iter_pages()] == [2, 2, 1]
        assert (
            "".join(json.loads(item.to_json())["content"][0]["text"] for item in listed) == expected
        )


def test_a_deleted_item_is_gone_from_its_conversation(thinker_http: httpx.Client) -> None:
    conversation_id = create_conversation(thinker_http, items=[USER, message("user", "Bye")])
    first, second = list_items(thinker_http, conversation_id)
    path = f"/v1/conversations/{conversation_id}/items/{first['id']}"
    assert strict_conversation(thinker_http.delete(path).text).id == conversation_id
    assert list_items(thinker_http, conversation_id) == [second]
    for answer in (thinker_http.get(path), thinker_http.delete(path)):
        assert (answer.status_code, read_error(answer)["param"]) == (404, "item_id")
        assert str(first["id"]) in read_error(answer)["message"]


def test_an_item_may_refer_to_a_stored_item(thinker_http: httpx.Client) -> None:
    one = create_conversation(thinker_http, items=[USER])
    [kept] = list_items(thinker_http, one)
    other = create_conversation(thinker_http, items=[{"type": "item_reference", "id": kept["id"]}])
    [copy] = list_items(thinker_http, other)
    assert copy["content"] == kept["content"] and copy["id"] != kept["id"]


def test_citations_in_an_answer_are_stored_and_others_left_out(thinker_http: httpx.Client) -> None:
    cited = {"type": "url_citation", "start_index": 2, "end_index": 5, "title": "O", "url": "u"}
    for annotations, stored in (([cited], [cited]), ([{"type": "x"}], []), ("x", []), (None, [])):
        part = {"type": "output_text", "text": "a 【1】", "annotations": annotations}
        conversation_id = create_conversation(thinker_http, items=[message("assistant", [part])])
        [item] = list_items(thinker_http, conversation_id)
        strict_item(json.dumps(item))
        content = item["content"]
        assert isinstance(content, list)
        assert content[0]["annotations"] == stored


def test_unknown_fields_of_an_item_are_not_stored(thinker_http: httpx.Client) -> None:
    part = {"type": "output_text", "text": "Hi", "annotations": [{"type": "x"}], "more": 1}
    conversation_id = create_conversation(
        thinker_http, items=[message("assistant", [part], id="msg_mine", more=1)]
    )
    [item] = strict_items(thinker_http.get(f"/v1/conversations/{conversation_id}/items").text).data
    assert item.id != "msg_mine"


REFUSED: dict[str, tuple[Json, str, str]] = {
    "an item that is none": ({"items": [USER, 7]}, "items[1]", "7"),
    "an unknown part": (
        {"items": [USER, USER, message("user", [{"type": "input_video"}])]},
        "items[2].content[0].type",
        '"input_video"',
    ),
    "an unknown type": ({"items": [{"type": "telepathy"}]}, "items[0].type", '"telepathy"'),
    "an unknown status": (
        {"items": [message("user", "Hi", status="done")]},
        "items[0].status",
        '"done"',
    ),
    "an output of no call": ({"items": [output("call_9")]}, "items[0].call_id", '"call_9"'),
    "a text": ({"items": "Hi"}, "items", '"Hi"'),
    "too many items": ({"items": [USER] * 21}, "items", "20"),
}
REFUSED_OF_NEW: dict[str, tuple[Json, str, str]] = {
    "a reference to nothing": (
        {"items": [{"type": "item_reference", "id": "msg_9"}]},
        "items[0]",
        "msg_9",
    ),
    "too many labels": ({"metadata": {str(number): "" for number in range(17)}}, "metadata", "16"),
    "a long label": ({"metadata": {"a": "b" * 513}}, "metadata.a", "512"),
    "a number as label": ({"metadata": {"a": 7}}, "metadata.a", "7"),
}


@pytest.mark.parametrize("case", REFUSED | REFUSED_OF_NEW)
def test_a_conversation_is_not_made_of_anything(thinker_http: httpx.Client, case: str) -> None:
    body, param, told = (REFUSED | REFUSED_OF_NEW)[case]
    answer = thinker_http.post("/v1/conversations", json=body)
    error = read_error(answer)
    assert answer.status_code == (404 if "reference" in case else 400)
    assert error["param"] == param and told in error["message"]


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_is_added_when_one_item_is_wrong(thinker_http: httpx.Client, case: str) -> None:
    body, param, told = REFUSED[case]
    conversation_id = create_conversation(thinker_http, items=[USER])
    answer = thinker_http.post(f"/v1/conversations/{conversation_id}/items", json=body)
    error = read_error(answer)
    assert (answer.status_code, error["param"]) == (400, param)
    assert told in error["message"]
    assert len(list_items(thinker_http, conversation_id)) == 1


def test_a_call_id_counts_once_in_a_conversation(thinker_http: httpx.Client) -> None:
    conversation_id = create_conversation(thinker_http, items=[call("call_1")])
    answer = thinker_http.post(
        f"/v1/conversations/{conversation_id}/items", json={"items": [call("call_1")]}
    )
    assert (answer.status_code, read_error(answer)["param"]) == (400, "items[0].call_id")


@pytest.mark.parametrize(
    ("method", "rest", "body"),
    [
        ("GET", "", None),
        ("POST", "", {"metadata": {}}),
        ("DELETE", "", None),
        ("GET", "/items", None),
        ("POST", "/items", {"items": [USER]}),
        ("GET", "/items/msg_1", None),
        ("DELETE", "/items/msg_1", None),
    ],
)
def test_an_unknown_conversation_is_not_found(
    thinker_http: httpx.Client, http: httpx.Client, method: str, rest: str, body: Json | None
) -> None:
    """A server without a store finds no conversation either."""
    for client in (thinker_http, http):
        answer = client.request(method, f"/v1/conversations/conv_9{rest}", json=body)
        assert (answer.status_code, read_error(answer)["param"]) == (404, "conversation_id")
        assert "'conv_9' not found" in read_error(answer)["message"]


def test_a_key_does_not_find_conversations_of_another(tmp_path: Path) -> None:
    keys = ("sk-one", "sk-two")
    with running_server(
        config=ServerConfig(api_key=keys), store_url=f"sqlite:///{tmp_path}/store.sqlite3"
    ) as server:
        one, two = (
            openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0) for key in keys
        )
        with one, two:
            conversation_id = one.conversations.create(items=[{"role": "user", "content": "Hi"}]).id
            [item] = one.conversations.items.list(conversation_id)
            asks: list[Callable[[], object]] = [
                lambda: two.conversations.retrieve(conversation_id),
                lambda: two.conversations.delete(conversation_id),
                lambda: list(two.conversations.items.list(conversation_id)),
                lambda: two.conversations.items.delete(
                    str(item.id), conversation_id=conversation_id
                ),
                lambda: two.responses.create(
                    model="parrot", input="Hi", conversation=conversation_id
                ),
                lambda: two.conversations.create(
                    items=[{"type": "item_reference", "id": str(item.id)}]
                ),
            ]
            for ask in asks:
                with pytest.raises(openai.NotFoundError):
                    ask()
            assert list(one.conversations.items.list(conversation_id)) == [item]


def test_without_a_store_no_conversation_begins(http: httpx.Client) -> None:
    answer = http.post("/v1/conversations", json={})
    assert answer.status_code == 400
    assert "stores nothing" in read_error(answer)["message"]


@pytest.mark.parametrize("query", ["include=reasoning", "limit=0", "order=up", "after=msg_9"])
def test_a_list_that_cannot_be_given_is_refused(thinker_http: httpx.Client, query: str) -> None:
    conversation_id = create_conversation(thinker_http, items=[USER])
    answer = thinker_http.get(f"/v1/conversations/{conversation_id}/items?{query}")
    assert answer.status_code == (404 if "after" in query else 400)
    assert read_error(answer)["param"] == query.partition("=")[0]


def test_an_empty_list_of_items_is_a_list(thinker_http: httpx.Client) -> None:
    path = f"/v1/conversations/{create_conversation(thinker_http)}/items"
    empty: Json = {
        "object": "list",
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
    }
    for answer in (thinker_http.get(path), thinker_http.post(path, json={"items": []})):
        assert answer.json() == empty


def test_the_asynchronous_client_drives_every_operation(thinker: RunningServer) -> None:
    async def drive() -> list[object]:
        async with openai.AsyncOpenAI(
            base_url=f"{thinker.url}/v1", api_key="none", max_retries=0
        ) as client:
            made = await client.conversations.create(metadata={"a": "1"})
            added = await client.conversations.items.create(
                made.id, items=[{"type": "message", "role": "user", "content": "Hi"}]
            )
            item_id = str(added.data[0].id)
            found = await client.conversations.items.retrieve(item_id, conversation_id=made.id)
            listed = [item async for item in client.conversations.items.list(made.id)]
            assert found == added.data[0] == listed[0]
            left = await client.conversations.items.delete(item_id, conversation_id=made.id)
            updated = await client.conversations.update(made.id, metadata={})
            assert await client.conversations.retrieve(made.id) == updated
            deleted = await client.conversations.delete(made.id)
            return [left.id == made.id, updated.metadata, deleted.deleted]

    assert asyncio.run(drive()) == [True, {}, True]
