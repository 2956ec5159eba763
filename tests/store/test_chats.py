"""Tests stored chat completions: pages, filters, metadata, keys and retention."""

import asyncio
from collections.abc import Sequence

import pytest

from ouzel.store.base import Store
from ouzel.store.chats.records import ChatFilter, ChatPage, NewChat, StoredChat
from ouzel.store.errors import ChatNotFound, ItemNotFound
from ouzel.store.records import PageRequest
from tests.store.conftest import OpenStore
from tests.store.making import items, new_response, progress, texts

ALL = ChatFilter()
FIRST_TEN = PageRequest(limit=10, is_ascending=True)
_CLOCK_S = 0.1  # more than the resolution of the databases' clocks, and than their small steps back


def make_chat(
    chat_id: str,
    *,
    key_id: str | None = "key",
    model: str = "model",
    metadata: dict[str, str] | None = None,
    asked: Sequence[str] = ("a",),
    body: bytes = b"{}",
) -> NewChat:
    return NewChat(
        id=chat_id,
        key_id=key_id,
        model=model,
        metadata=metadata or {},
        body=body,
        messages=items(*asked),
    )


async def find_ids(store: Store, chosen: ChatFilter = ALL, key_id: str | None = "key") -> list[str]:
    return ids(await store.chats.page(key_id, chosen, FIRST_TEN))


def ids(page: ChatPage) -> list[str]:
    return [chat.id for chat in page.chats]


async def test_a_chat_comes_out_as_it_went_in(store: Store) -> None:
    metadata = {"topic": "birds \0 🐦"}
    await store.chats.add(make_chat("chat_1", metadata=metadata, body=b'{"a":1}', asked="ab"))
    expected = StoredChat(id="chat_1", metadata=metadata, body=b'{"a":1}')
    assert await store.chats.get("chat_1", "key") == expected
    assert (await store.chats.page("key", ALL, FIRST_TEN)).chats == (expected,)
    messages = await store.chats.messages("chat_1", "key", FIRST_TEN)
    assert (messages.items, messages.has_more) == (items("a", "b"), False)


@pytest.mark.parametrize(("is_ascending", "expected"), [(True, "12345"), (False, "54321")])
async def test_chats_are_listed_in_the_order_of_storing(
    store: Store, is_ascending: bool, expected: str
) -> None:
    for number in "12345":
        await store.chats.add(make_chat(number))
    listed, after = "", None
    for has_more in (True, True, False):
        request = PageRequest(limit=2, is_ascending=is_ascending, after=after)
        page = await store.chats.page("key", ALL, request)
        assert page.has_more is has_more
        listed += "".join(ids(page))
        after = page.chats[-1].id
    assert listed == expected


@pytest.mark.parametrize(("is_ascending", "expected"), [(True, "abc"), (False, "cba")])
async def test_messages_are_listed_in_pages(
    store: Store, is_ascending: bool, expected: str
) -> None:
    await store.chats.add(make_chat("chat_1", asked="abc"))
    listed, after = "", None
    for has_more in (True, False):
        request = PageRequest(limit=2, is_ascending=is_ascending, after=after)
        page = await store.chats.messages("chat_1", "key", request)
        assert page.has_more is has_more
        listed += "".join(texts(page.items))
        after = page.items[-1].id
    assert listed == expected


async def test_a_page_after_an_unknown_id_is_an_error(store: Store) -> None:
    await store.chats.add(make_chat("chat_1"))
    await store.chats.add(make_chat("theirs", key_id="other"))
    for unknown in ("nothing", "theirs"):
        request = PageRequest(limit=2, is_ascending=True, after=unknown)
        with pytest.raises(ChatNotFound, match=unknown) as raised:
            await store.chats.page("key", ALL, request)
        assert raised.value.param == "after"
        with pytest.raises(ItemNotFound, match=unknown):
            await store.chats.messages("chat_1", "key", request)


async def test_lists_are_filtered_by_model_and_by_every_label(store: Store) -> None:
    await store.chats.add(make_chat("1", metadata={"team": "a", "run": "7"}))
    await store.chats.add(make_chat("2", metadata={"team": "a", "run": "8"}))
    await store.chats.add(make_chat("3", metadata={"team": "a\0", "run": "7"}))
    await store.chats.add(make_chat("4", metadata={"team": "a", "run": "7"}, model="other"))
    await store.chats.add(make_chat("5", metadata={"team": "a", "run": "7"}, key_id="other"))
    for chosen, expected in (
        (ChatFilter(model="model"), "123"),
        (ChatFilter(labels={"team": "a"}), "124"),
        (ChatFilter(labels={"team": "a\0"}), "3"),
        (ChatFilter(labels={"run": "7", "team": "a"}), "14"),
        (ChatFilter(labels={"run": "7", "team": "a"}, model="other"), "4"),
        (ChatFilter(labels={"team": "7"}), ""),
        (ChatFilter(model="nothing"), ""),
    ):
        assert "".join(await find_ids(store, chosen)) == expected, chosen


async def test_a_filtered_page_begins_after_a_chat_that_the_filter_leaves_out(store: Store) -> None:
    for number, model in zip("1234", "abab", strict=True):
        await store.chats.add(make_chat(number, model=model))
    request = PageRequest(limit=10, is_ascending=True, after="1")
    assert ids(await store.chats.page("key", ChatFilter(model="b"), request)) == ["2", "4"]


async def test_metadata_is_replaced(store: Store) -> None:
    await store.chats.add(make_chat("chat_1", metadata={"topic": "birds", "old": "yes"}))
    changed = await store.chats.update("chat_1", "key", {"topic": "ouzels"})
    assert changed == StoredChat(id="chat_1", metadata={"topic": "ouzels"}, body=b"{}")
    assert await store.chats.get("chat_1", "key") == changed
    assert await find_ids(store, ChatFilter(labels={"old": "yes"})) == []
    assert await find_ids(store, ChatFilter(labels={"topic": "ouzels"})) == ["chat_1"]
    assert await store.chats.update("nothing", "key", {}) is None


async def test_labels_that_a_database_cannot_tell_apart_are_stored(store: Store) -> None:
    metadata = {"a\0": "1", "a\ufffd": "2"}
    await store.chats.add(make_chat("chat_1", metadata=metadata))
    stored = await store.chats.get("chat_1", "key")
    assert stored is not None and stored.metadata == metadata


async def test_changes_of_one_chat_at_the_same_time_leave_one_of_them(store: Store) -> None:
    await store.chats.add(make_chat("chat_1"))
    values = [str(number) for number in range(8)]
    await asyncio.gather(*(store.chats.update("chat_1", "key", {"a": each}) for each in values))
    stored = await store.chats.get("chat_1", "key")
    assert stored is not None
    found = [each for each in values if await find_ids(store, ChatFilter(labels={"a": each}))]
    assert found == [stored.metadata["a"]]


async def test_another_key_sees_and_changes_nothing(store: Store) -> None:
    await store.chats.add(make_chat("chat_1", metadata={"topic": "birds"}))
    before = await store.chats.get("chat_1", "key")
    for other in ("other", None):
        assert await store.chats.get("chat_1", other) is None
        assert await find_ids(store, key_id=other) == []
        assert await store.chats.update("chat_1", other, {}) is None
        assert not await store.chats.delete("chat_1", other)
        with pytest.raises(ChatNotFound, match="chat_1"):
            await store.chats.messages("chat_1", other, FIRST_TEN)
    assert await store.chats.get("chat_1", "key") == before
    assert await find_ids(store, ChatFilter(labels={"topic": "birds"})) == ["chat_1"]


async def test_a_deleted_chat_is_gone_and_its_id_is_free(store: Store) -> None:
    await store.chats.add(make_chat("chat_1", metadata={"a": "b"}, asked="ab"))
    assert await store.chats.delete("chat_1", "key")
    assert not await store.chats.delete("chat_1", "key")
    assert await store.chats.get("chat_1", "key") is None
    assert await find_ids(store) == []
    await store.chats.add(make_chat("chat_1", asked="c"))
    assert texts((await store.chats.messages("chat_1", "key", FIRST_TEN)).items) == ["c"]
    assert await find_ids(store, ChatFilter(labels={"a": "b"})) == []


async def test_chats_and_responses_share_the_size_and_the_least_recently_used_go_first(
    opened: OpenStore,
) -> None:
    store = await opened(max_bytes=3 * 2**20)
    large = bytes(2**20)
    await store.chats.add(make_chat("chat_1", body=large, metadata={"a": "b"}))
    await asyncio.sleep(_CLOCK_S)
    await store.add_response(new_response("resp_1", asked=["x"]))
    assert await store.record("resp_1", progress(), first_event=0)
    for number in range(2, 5):
        await asyncio.sleep(_CLOCK_S)
        await store.chats.add(make_chat(f"chat_{number}", body=large))
    assert await store.sweep() == 3
    assert await find_ids(store) == ["chat_3", "chat_4"]
    assert await store.response("resp_1", "key") is None
    assert await store.sweep() == 0
    await store.chats.add(make_chat("chat_1"))  # no row of the old one is left
    assert await find_ids(store, ChatFilter(labels={"a": "b"})) == []


async def test_a_chat_that_is_read_is_in_use(opened: OpenStore) -> None:
    store = await opened(max_bytes=3 * 2**20)
    large = bytes(2**20)
    for number in range(1, 4):
        await store.chats.add(make_chat(f"chat_{number}", body=large))
    reader = await opened(max_age_s=0.0)  # notices every use, even soon after the last
    assert await reader.chats.get("chat_1", "key") is not None
    await reader.chats.messages("chat_2", "key", FIRST_TEN)
    await reader.beat()
    await store.chats.add(make_chat("chat_4", body=large))
    assert await store.sweep() == 2
    assert await find_ids(store) in (["chat_1", "chat_4"], ["chat_2", "chat_4"])


async def test_old_chats_are_deleted(opened: OpenStore) -> None:
    store = await opened(max_age_s=0.01)
    await store.chats.add(make_chat("chat_1"))
    while await store.sweep() == 0:
        await asyncio.sleep(0.02)
    assert await find_ids(store) == []


async def test_a_changed_size_counts(opened: OpenStore) -> None:
    """Sixteen long labels are added, and removed again; the size is then the old one."""
    store = await opened(max_bytes=2**14)
    await store.chats.add(make_chat("chat_1", body=bytes(2**13)))
    assert await store.sweep() == 0
    await store.chats.update("chat_1", "key", {str(number): "x" * 512 for number in range(16)})
    await store.chats.update("chat_1", "key", {})
    assert await store.sweep() == 0
    await store.chats.update("chat_1", "key", {str(number): "x" * 512 for number in range(16)})
    assert await store.sweep() == 1
