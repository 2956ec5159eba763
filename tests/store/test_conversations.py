"""Tests conversations, their items, and the single response that may run in one at a time."""

import asyncio

import pytest

from ouzel.errors import OuzelError
from ouzel.store.base import Store
from ouzel.store.errors import ConversationLocked, ConversationNotFound, ItemNotFound
from ouzel.store.records import Item, PageRequest, Status
from tests.store.making import items, new_response, progress, texts


async def read_all_texts(store: Store, conversation_id: str = "conv_1") -> list[str]:
    return texts(await store.conversation_items(conversation_id, "key"))


async def test_a_conversation_comes_out_as_it_went_in(store: Store) -> None:
    made = await store.create_conversation(
        "conv_1", "key", {"topic": "birds \0 🐦"}, items("a", "b")
    )
    assert await store.conversation("conv_1", "key") == made
    assert made.metadata == {"topic": "birds \0 🐦"}
    assert await store.conversation_items("conv_1", "key") == list(items("a", "b"))
    assert await store.conversation_item("conv_1", "key", "msg_b") == items("b")[0]
    assert await store.item("msg_b", "key") == items("b")[0]


async def test_metadata_is_replaced(store: Store) -> None:
    made = await store.create_conversation("conv_1", "key", {"topic": "birds", "kept": "no"}, [])
    changed = await store.update_conversation("conv_1", "key", {"topic": "ouzels"})
    assert changed is not None and changed.metadata == {"topic": "ouzels"}
    assert changed.created_at == made.created_at
    assert await store.conversation("conv_1", "key") == changed


async def test_items_are_added_at_the_end_and_deleted_one_by_one(store: Store) -> None:
    await store.create_conversation("conv_1", "key", {}, items("a"))
    await store.add_conversation_items("conv_1", "key", items("b", "c"))
    assert await store.delete_conversation_item("conv_1", "key", "msg_b")
    assert not await store.delete_conversation_item("conv_1", "key", "msg_b")
    await store.add_conversation_items("conv_1", "key", items("d"))
    assert await read_all_texts(store) == ["a", "c", "d"]


async def test_another_key_sees_and_changes_nothing(store: Store) -> None:
    await store.create_conversation("conv_1", "key", {"topic": "birds"}, items("a"))
    before = await store.conversation("conv_1", "key")
    page = PageRequest(limit=10, is_ascending=True)
    for other in ("other", None):
        assert await store.conversation("conv_1", other) is None
        assert await store.update_conversation("conv_1", other, {}) is None
        assert not await store.delete_conversation("conv_1", other)
        for attempt in (
            store.conversation_items("conv_1", other),
            store.conversation_page("conv_1", other, page),
            store.conversation_item("conv_1", other, "msg_a"),
            store.add_conversation_items("conv_1", other, items("b")),
            store.delete_conversation_item("conv_1", other, "msg_a"),
            store.add_response(new_response(key_id=other, conversation="conv_1")),
        ):
            with pytest.raises(ConversationNotFound, match="conv_1"):
                await attempt
    assert await store.conversation("conv_1", "key") == before
    assert await read_all_texts(store) == ["a"]


@pytest.mark.parametrize(("is_ascending", "expected"), [(True, "abcde"), (False, "edcba")])
async def test_items_are_listed_in_pages(store: Store, is_ascending: bool, expected: str) -> None:
    await store.create_conversation("conv_1", "key", {}, items(*"abcde"))
    listed, after = "", None
    for has_more in (True, True, False):
        page = await store.conversation_page(
            "conv_1", "key", PageRequest(limit=2, is_ascending=is_ascending, after=after)
        )
        assert page.has_more is has_more
        listed += "".join(texts(page.items))
        after = page.items[-1].id
    assert listed == expected


@pytest.mark.parametrize("is_ascending", [True, False])
async def test_pages_end_where_an_item_was_sent_twice(store: Store, is_ascending: bool) -> None:
    await store.create_conversation("conv_1", "key", {}, items("a", "b", "a"))
    after, num_pages, has_more = None, 0, True
    while has_more:
        page = await store.conversation_page(
            "conv_1", "key", PageRequest(limit=1, is_ascending=is_ascending, after=after)
        )
        after, num_pages, has_more = (
            (page.items[-1].id if page.items else None),
            num_pages + 1,
            page.has_more,
        )
        assert num_pages <= 3


async def test_a_page_after_an_item_of_another_conversation_is_refused(store: Store) -> None:
    await store.create_conversation("conv_1", "key", {}, items("a"))
    await store.create_conversation("conv_2", "key", {}, items("b"))
    with pytest.raises(ItemNotFound, match="msg_b") as caught:
        await store.conversation_page(
            "conv_1", "key", PageRequest(limit=1, is_ascending=True, after="msg_b")
        )
    assert caught.value.param == "after"


async def test_a_response_holds_its_conversation_until_it_ends(store: Store) -> None:
    await store.create_conversation("conv_1", "key", {}, items("a"))
    await store.add_response(new_response("resp_1", conversation="conv_1", asked=["b"]))
    for attempt in (
        store.add_response(new_response("resp_2", conversation="conv_1")),
        store.add_conversation_items("conv_1", "key", items("x")),
    ):
        with pytest.raises(ConversationLocked, match="conv_1"):
            await attempt
    assert await store.response("resp_2", "key") is None
    assert await store.record("resp_1", progress(Status.IN_PROGRESS), first_event=0)
    assert await read_all_texts(store) == ["a"]
    assert await store.record("resp_1", progress(Status.COMPLETED, "c"), first_event=0)
    assert await read_all_texts(store) == ["a", "b", "c"]
    await store.add_response(new_response("resp_3", conversation="conv_1"))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status.COMPLETED, ["a", "b", "c"]),
        (Status.INCOMPLETE, ["a", "b", "c"]),
        (Status.FAILED, ["a"]),
        (Status.CANCELLED, ["a"]),
    ],
)
async def test_only_responses_with_a_result_stand_in_the_conversation(
    store: Store, status: Status, expected: list[str]
) -> None:
    await store.create_conversation("conv_1", "key", {}, items("a"))
    await store.add_response(new_response("resp_1", conversation="conv_1", asked=["b"]))
    assert await store.record("resp_1", progress(status, "c"), first_event=0)
    assert await read_all_texts(store) == expected
    await store.add_response(new_response("resp_2", conversation="conv_1"))


async def test_deleting_the_response_that_holds_it_frees_a_conversation(store: Store) -> None:
    await store.create_conversation("conv_1", "key", {}, items("a"))
    await store.add_response(new_response("resp_1", conversation="conv_1", asked=["b"]))
    assert await store.delete_response("resp_1", "key")
    await store.add_response(new_response("resp_2", conversation="conv_1"))
    assert await read_all_texts(store) == ["a"]


async def test_a_response_ends_without_the_conversation_that_was_deleted_under_it(
    store: Store,
) -> None:
    await store.create_conversation("conv_1", "key", {}, items("a"))
    await store.add_response(new_response("resp_1", conversation="conv_1", asked=["b"]))
    assert await store.delete_conversation("conv_1", "key")
    assert await store.record("resp_1", progress(Status.COMPLETED, "c"), first_event=0)
    assert await store.conversation("conv_1", "key") is None
    assert await store.item("msg_a", "key") is None
    assert await store.item("msg_c", "key") is not None


async def test_of_many_responses_at_once_one_gets_the_conversation(store: Store) -> None:
    await store.create_conversation("conv_1", "key", {}, [])
    attempts = [
        store.add_response(new_response(f"resp_{n}", conversation="conv_1")) for n in range(8)
    ]
    outcomes = await asyncio.gather(*attempts, return_exceptions=True)
    assert outcomes.count(None) == 1
    refused = [outcome for outcome in outcomes if outcome is not None]
    assert all(
        isinstance(outcome, OuzelError) and outcome.code == "conversation_locked"
        for outcome in refused
    )


@pytest.mark.parametrize("before", [[], ["a"]])
async def test_a_response_that_has_not_read_the_latest_is_refused(
    store: Store, before: list[str]
) -> None:
    await store.create_conversation("conv_1", "key", {}, items(*before))
    read = "msg_a" if before else ""
    await store.add_conversation_items("conv_1", "key", items("b"))
    with pytest.raises(ConversationLocked):
        await store.add_response(new_response("resp_1", conversation="conv_1", last_item_read=read))
    await store.add_response(new_response("resp_2", conversation="conv_1", last_item_read="msg_b"))


async def test_items_keep_bodies_that_are_no_text(store: Store) -> None:
    body = bytes(range(256)) * 1000
    await store.create_conversation("conv_1", None, {}, [Item("msg_a", body)])
    assert await store.conversation_items("conv_1", None) == [Item("msg_a", body)]
