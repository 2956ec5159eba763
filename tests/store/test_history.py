"""Tests the history that a response continues."""

import pytest

from ouzel.store.base import Store
from ouzel.store.errors import HistoryLost, ItemNotFound, ResponseNotFound
from ouzel.store.records import PageRequest, Status
from tests.store.making import new_response, progress, texts


async def add_answered(
    store: Store, response_id: str, asked: str, said: str, **where: str | None
) -> None:
    record = new_response(response_id, asked=[asked], **where)  # type: ignore[arg-type]
    await store.add_response(record)
    assert await store.record(response_id, progress(Status.COMPLETED, said), first_event=0)


async def add_chain(store: Store) -> None:
    await add_answered(store, "resp_1", "a", "b")
    await add_answered(store, "resp_2", "c", "d", previous="resp_1")
    await add_answered(store, "resp_3", "e", "f", previous="resp_2")


async def test_a_chain_is_read_from_its_beginning(store: Store) -> None:
    await add_chain(store)
    assert texts(await store.history("resp_3", "key")) == ["a", "b", "c", "d", "e", "f"]
    assert texts(await store.history("resp_1", "key")) == ["a", "b"]


async def test_two_may_continue_one(store: Store) -> None:
    await add_chain(store)
    await add_answered(store, "resp_4", "x", "y", previous="resp_1")
    assert texts(await store.history("resp_4", "key")) == ["a", "b", "x", "y"]
    assert texts(await store.history("resp_3", "key")) == ["a", "b", "c", "d", "e", "f"]


async def test_a_chain_with_a_deleted_response_is_never_shorter_in_silence(store: Store) -> None:
    await add_chain(store)
    await store.delete_response("resp_1", "key")
    for response_id in ("resp_2", "resp_3"):
        with pytest.raises(HistoryLost, match="'resp_1', which was deleted") as caught:
            await store.history(response_id, "key")
        assert (caught.value.response_id, caught.value.lost_id) == (response_id, "resp_1")


async def test_another_keys_response_has_no_history(store: Store) -> None:
    await add_chain(store)
    for response_id, key_id in (("resp_3", "other"), ("resp_3", None), ("resp_9", "key")):
        with pytest.raises(ResponseNotFound, match=response_id):
            await store.history(response_id, key_id)
        page = PageRequest(limit=10, is_ascending=True)
        assert await store.input_items(response_id, key_id, page) is None


async def test_a_response_made_in_a_conversation_continues_the_items_it_found_there(
    store: Store,
) -> None:
    await store.create_conversation("conv_1", "key", {}, [])
    await add_answered(store, "resp_1", "a", "b", conversation="conv_1")
    await add_answered(store, "resp_2", "c", "d", conversation="conv_1")
    await add_answered(store, "resp_3", "x", "y", previous="resp_1")
    assert texts(await store.history("resp_2", "key")) == ["a", "b", "c", "d"]
    assert texts(await store.history("resp_3", "key")) == ["a", "b", "x", "y"]
    await store.delete_conversation("conv_1", "key")
    with pytest.raises(HistoryLost, match="conv_1"):
        await store.history("resp_2", "key")


async def test_items_removed_from_the_conversation_are_no_history_any_more(store: Store) -> None:
    await store.create_conversation("conv_1", "key", {}, [])
    await add_answered(store, "resp_1", "a", "b", conversation="conv_1")
    await add_answered(store, "resp_2", "c", "d", conversation="conv_1")
    assert await store.delete_conversation_item("conv_1", "key", "msg_a")
    assert texts(await store.history("resp_2", "key")) == ["b", "c", "d"]
    assert texts(await store.history("resp_1", "key")) == ["a", "b"]


async def test_pages_end_where_a_client_has_sent_items_back(store: Store) -> None:
    await add_answered(store, "resp_1", "a", "b")
    await store.add_response(new_response("resp_2", asked=["a", "b", "c"], previous="resp_1"))
    after, has_more = None, True
    while has_more:
        page = await store.input_items(
            "resp_2", "key", PageRequest(limit=1, is_ascending=True, after=after)
        )
        assert page is not None
        after, has_more = page.items[-1].id, page.has_more
    assert after == "msg_c"


@pytest.mark.parametrize(("is_ascending", "expected"), [(True, "abcde"), (False, "edcba")])
async def test_input_items_are_the_whole_context_in_pages(
    store: Store, is_ascending: bool, expected: str
) -> None:
    await add_chain(store)
    listed, after = "", None
    for has_more in (True, True, False):
        page = await store.input_items(
            "resp_3", "key", PageRequest(limit=2, is_ascending=is_ascending, after=after)
        )
        assert page is not None and page.has_more is has_more
        listed += "".join(texts(page.items))
        after = page.items[-1].id
    assert listed == expected


async def test_a_page_after_an_item_that_is_not_listed_is_refused(store: Store) -> None:
    await add_chain(store)
    with pytest.raises(ItemNotFound, match="msg_f"):  # the response's own output
        await store.input_items(
            "resp_3", "key", PageRequest(limit=2, is_ascending=True, after="msg_f")
        )


async def test_any_item_of_the_key_is_found_by_its_id(store: Store) -> None:
    await add_chain(store)
    for text in "af":
        item = await store.item(f"msg_{text}", "key")
        assert item is not None and item.body == f'{{"id":"msg_{text}","text":"{text}"}}'.encode()
        assert await store.item(f"msg_{text}", "other") is None
