"""Tests stored files: contents in pieces, keys, pages, limits and expiry."""

import asyncio
from collections.abc import Sequence

import pytest

from ouzel.store.base import Store
from ouzel.store.errors import FileNotFound, FilesFull
from ouzel.store.files.records import NewFile
from ouzel.store.records import PageRequest
from ouzel.store.sql_store import open_store
from tests.store.conftest import OpenStore

ALL = PageRequest(limit=10, is_ascending=True)


def new_file(file_id: str, *, key_id: str | None = "key") -> NewFile:
    return NewFile(id=file_id, key_id=key_id, filename="a \0 ß.txt")


async def upload(
    store: Store,
    new: NewFile,
    pieces: Sequence[bytes] = (b"abc",),
    *,
    purpose: str = "user_data",
    expires_after_s: float | None = None,
) -> None:
    await store.files.begin(new)
    for number, piece in enumerate(pieces):
        await store.files.add_piece(new.id, number, piece)
    await store.files.finish(new.id, purpose, expires_after_s)


async def read(store: Store, file_id: str, key_id: str | None = "key") -> bytes:
    return b"".join([piece async for piece in store.files.read(file_id, key_id)])


async def list_ids(store: Store, key_id: str | None = "key", purpose: str | None = None) -> str:
    page = await store.files.page(key_id, purpose, ALL)
    return " ".join(file.id for file in page.files)


@pytest.mark.parametrize("pieces", [[], [b"abc"], [b"abc", b"de"], [b"a" * 2**20] * 3])
async def test_a_file_comes_out_as_it_went_in(store: Store, pieces: list[bytes]) -> None:
    await upload(store, new_file("file-1"), pieces)
    file = await store.files.get("file-1", "key")
    assert file is not None
    assert (file.filename, file.purpose) == ("a \N{REPLACEMENT CHARACTER} ß.txt", "user_data")
    assert file.size_bytes == sum(map(len, pieces))
    assert await read(store, "file-1") == b"".join(pieces)


async def test_an_unfinished_upload_is_not_visible(store: Store) -> None:
    await store.files.begin(new_file("file-1"))
    await store.files.add_piece("file-1", 0, b"abc")
    assert await store.files.get("file-1", "key") is None
    assert await list_ids(store) == ""
    await store.files.drop("file-1")
    with pytest.raises(FileNotFound):
        await store.files.finish("file-1", "batch")


async def test_keys_own_their_files(store: Store) -> None:
    await upload(store, new_file("file-1", key_id="other"))
    assert await store.files.get("file-1", "key") is None
    assert not await store.files.delete("file-1", "key")
    with pytest.raises(FileNotFound):
        await read(store, "file-1")
    assert await list_ids(store) == ""
    assert await read(store, "file-1", "other") == b"abc"


async def test_files_are_listed_in_pages_and_by_purpose(store: Store) -> None:
    for number in range(5):
        purpose = "batch" if number % 2 else "vision"
        await upload(store, new_file(f"file-{number}"), purpose=purpose)
    assert await list_ids(store, purpose="batch") == "file-1 file-3"
    page = await store.files.page(
        "key", None, PageRequest(limit=2, is_ascending=False, after="file-3")
    )
    assert ([file.id for file in page.files], page.has_more) == (["file-2", "file-1"], True)
    with pytest.raises(FileNotFound):
        await store.files.page("key", None, PageRequest(limit=2, is_ascending=True, after="x"))


async def test_a_deleted_file_is_gone_while_it_is_read(store: Store) -> None:
    await upload(store, new_file("file-1"), [b"a", b"b", b"c"])
    pieces = store.files.read("file-1", "key")
    assert await anext(pieces) == b"a"
    assert await store.files.delete("file-1", "key")
    with pytest.raises(FileNotFound):
        await anext(pieces)


async def test_an_expired_file_does_not_exist_and_is_swept(store: Store) -> None:
    await upload(store, new_file("file-1"), expires_after_s=0.0)
    await upload(store, new_file("file-2"), expires_after_s=3600.0)
    assert await store.files.get("file-1", "key") is None
    assert await list_ids(store) == "file-2"
    assert await store.files.sweep() == 1
    assert await store.files.sweep() == 0


async def test_a_long_file_is_deleted_with_all_its_pieces(store: Store) -> None:
    await upload(store, new_file("file-1"), [b"x"] * 50)
    assert await store.files.delete("file-1", "key")
    assert await store.files.sweep() == 0
    await upload(store, new_file("file-1"), [b"y"])
    assert await read(store, "file-1") == b"y"


async def test_an_upload_ends_once(store: Store) -> None:
    await upload(store, new_file("file-1"))
    with pytest.raises(FileNotFound):
        await store.files.finish("file-1", "vision")


async def test_all_files_together_have_a_limit(store_url: str) -> None:
    store = await open_store(store_url, max_age_s=3600, max_bytes=2**30, max_file_bytes=10)
    try:
        await upload(store, new_file("file-1"), [b"12345678"])
        await store.files.begin(new_file("file-2"))
        with pytest.raises(FilesFull, match="10 bytes"):
            await store.files.add_piece("file-2", 0, b"345")
        assert await store.files.delete("file-1", "key")
        await store.files.add_piece("file-2", 0, b"345")
    finally:
        await store.close()


async def test_uploads_at_the_same_time_do_not_mix(opened: OpenStore) -> None:
    stores = [await opened(), await opened()]
    await asyncio.gather(
        *(
            upload(stores[n % 2], new_file(f"file-{n}"), [str(n).encode()] * 3)
            for n in range(10, 20)
        )
    )
    for n in range(10, 20):
        assert await read(stores[0], f"file-{n}") == str(n).encode() * 3
