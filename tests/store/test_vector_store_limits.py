"""The bytes of vector stores have limits: for the server, and for each API key."""

import pytest

from ouzel.store.base import Store
from ouzel.store.errors import VectorStoresFull
from ouzel.store.vector_stores.room import SizeLimits
from tests.store.conftest import OpenStore
from tests.store.test_vector_stores import FOREVER, add_chunks, create, find, index, upload

# A chunk of `add_chunks` has a vector of 8 bytes and its text.
ROOM = SizeLimits(max_bytes=60, max_bytes_per_key=60)


async def test_texts_and_vectors_count(store: Store) -> None:
    await create(store)
    await index(store, "one whale", "zwölf")
    stored = await store.vector_stores.get("vs_1", None)
    assert stored is not None
    assert stored.usage_bytes == 2 * 8 + len("one whale") + len("zwölf".encode())


@pytest.mark.parametrize(
    ("limits", "option"),
    [
        (SizeLimits(60, 1000), r"60 bytes .* \(vector_stores_max_gib\)"),
        (SizeLimits(1000, 60), r"60 bytes .* \(vector_stores_key_max_gib\)"),
    ],
)
async def test_vector_stores_that_are_full_take_nothing(
    opened: OpenStore, limits: SizeLimits, option: str
) -> None:
    store = await opened(vector_limits=limits)
    await create(store)
    await create(store, "vs_2")
    await index(store, "x" * 44)
    file = await upload(store, "file-b")
    await store.vector_stores.add_files("vs_2", None, [file], max_files=FOREVER)
    job = await store.vector_stores.take_job()
    assert job is not None
    with pytest.raises(VectorStoresFull, match=option):
        await add_chunks(store, job.number, "y")
    await store.vector_stores.fail(job.number, "server_error", "full")
    await index(store, "", store_id="vs_2")
    with pytest.raises(VectorStoresFull, match=option):
        await store.vector_stores.add_files("vs_2", None, [file], max_files=FOREVER)
    with pytest.raises(VectorStoresFull, match=option):
        await create(store, "vs_3", None, file)
    assert await store.vector_stores.get("vs_3", None) is None


async def test_another_key_has_room_of_its_own(opened: OpenStore) -> None:
    store = await opened(vector_limits=SizeLimits(1000, 20))
    await create(store, "vs_1", "one", await upload(store, "file-a", "one"))
    job = await store.vector_stores.take_job()
    assert job is not None
    assert await add_chunks(store, job.number, "x" * 12)
    await store.vector_stores.complete(job.number)
    with pytest.raises(VectorStoresFull):
        await create(store, "vs_2", "one", await upload(store, "file-b", "one"))
    await create(store, "vs_3", "two", await upload(store, "file-c", "two"))


async def test_deletions_make_room(opened: OpenStore) -> None:
    store = await opened(vector_limits=ROOM)
    await create(store)
    await index(store, "one" + "x" * 49)
    await store.vector_stores.remove_file("vs_1", None, "file-onex-vs_1")
    await index(store, "two" + "x" * 49)
    await store.files.delete("file-twox-vs_1", None)  # a deleted upload leaves its vector stores
    await index(store, "six" + "x" * 49)
    await store.vector_stores.delete("vs_1", None)
    await create(store)
    await index(store, "ten" + "x" * 49)


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_file_that_ends_without_result_leaves_no_chunks(
    store: Store, *, is_cancelled: bool
) -> None:
    await create(store)
    file = await upload(store, "file-a")
    await store.vector_stores.add_files("vs_1", None, [file], batch_id="vsfb_1", max_files=9)
    job = await store.vector_stores.take_job()
    assert job is not None
    await add_chunks(store, job.number, "a whale")
    if is_cancelled:
        await store.vector_stores.cancel_batch("vs_1", None, "vsfb_1")
    else:
        await store.vector_stores.fail(job.number, "server_error", "no")
    assert await store.vector_stores.chunks_of_file(job.number, first=0, limit=5) == []
    assert await find(store, "whale") == []
    stored = await store.vector_stores.get("vs_1", None)
    assert stored is not None
    assert stored.usage_bytes == 0
    assert await store.vector_stores.remove_file("vs_1", None, "file-a")
