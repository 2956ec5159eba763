"""Vector stores in SQLite and Postgres: files, chunks, words, vectors, deletions."""

import numpy as np
import pytest

from ouzel.store.base import Store
from ouzel.store.errors import VectorFileNotFound, VectorStoreFull, VectorStoreNotFound
from ouzel.store.files.records import NewFile
from ouzel.store.vector_stores.records import (
    ChunkPlace,
    CursorRequest,
    FileStatus,
    NewChunk,
    NewVectorFile,
    NewVectorStore,
    StoreChange,
    StoredVectorFile,
)
from tests.store.conftest import OpenStore

FOREVER = 10_000


async def upload(store: Store, file_id: str, key_id: str | None = None) -> NewVectorFile:
    await store.files.begin(NewFile(id=file_id, key_id=key_id, filename=f"{file_id}.md"))
    await store.files.add_piece(file_id, 0, b"text")
    await store.files.finish(file_id, "assistants")
    return NewVectorFile(
        file_id=file_id, filename=f"{file_id}.md", attributes=b"{}", strategy=b"{}"
    )


async def create(
    store: Store, store_id: str = "vs_1", key_id: str | None = None, *files: NewVectorFile
) -> None:
    await store.vector_stores.create(
        NewVectorStore(
            id=store_id,
            key_id=key_id,
            name="one",
            description=None,
            metadata=b"{}",
            model="embedder",
            expires_after_days=None,
        ),
        files,
    )


async def index(store: Store, *texts: str, store_id: str = "vs_1") -> int:
    """Uploads a file, and indexes it with a chunk for each text; returns the file's number."""
    file_id = f"file-{texts[0][:4]}-{store_id}"
    file = await upload(store, file_id)
    await store.vector_stores.add_files(store_id, None, [file], max_files=FOREVER)
    job = await store.vector_stores.take_job()
    assert job is not None
    assert job.file_id == file_id
    assert await add_chunks(store, job.number, *texts)
    assert await store.vector_stores.complete(job.number)
    return job.number


async def add_chunks(store: Store, number: int, *texts: str) -> bool:
    chunks = [
        NewChunk(position=place, start=0, heading="", text=text, words=text)
        for place, text in enumerate(texts)
    ]
    vectors = np.ones((len(texts), 4), np.float16)
    positions = np.arange(len(texts), dtype=np.int32)
    return await store.vector_stores.add_chunks(
        number, 0, chunks, positions=positions.tobytes(), vectors=vectors.tobytes()
    )


async def get_file(store: Store, file_id: str, store_id: str = "vs_1") -> StoredVectorFile:
    file = await store.vector_stores.file(store_id, None, file_id)
    assert file is not None
    return file


async def find(store: Store, *words: str, files: list[int] | None = None) -> list[ChunkPlace]:
    return await store.vector_stores.find_words(["vs_1"], words, files, limit=9)


async def test_the_chunk_with_the_rarer_words_comes_first(store: Store) -> None:
    await create(store)
    number = await index(
        store, "the blue whale sings", "a whale and a whale", "nothing", "blue blue whales"
    )
    found = await find(store, "whale", "sing")
    assert found[0] == ChunkPlace(number, 0)
    assert {place.position for place in found} == {0, 1, 3}


async def test_words_of_another_vector_store_are_not_found(store: Store) -> None:
    await create(store)
    await create(store, "vs_2")
    await index(store, "a blue whale", store_id="vs_2")
    assert await find(store, "whale") == []


async def test_only_chunks_of_the_given_files_are_found(store: Store) -> None:
    await create(store)
    first = await index(store, "one whale")
    second = await index(store, "two whale")
    assert await find(store, "whale", files=[second]) == [ChunkPlace(second, 0)]
    assert len(await find(store, "whale", files=[first, second])) == 2
    assert await find(store, "whale", files=[]) == []


async def test_chunks_and_vectors_are_returned(store: Store) -> None:
    await create(store)
    number = await index(store, "one whale", "two whales")
    [chunk] = await store.vector_stores.chunks([ChunkPlace(number, 1)])
    assert chunk.text == "two whales"
    [part] = await store.vector_stores.vectors([number])
    assert np.frombuffer(part.positions, np.int32).tolist() == [0, 1]
    assert np.frombuffer(part.vectors, np.float16).shape == (8,)
    chunks = await store.vector_stores.chunks_of_file(number, first=1, limit=5)
    assert [each.position for each in chunks] == [1]
    [file] = (await store.vector_stores.searched_files(["vs_1"]))["vs_1"]
    assert file.number == number


async def test_a_deleted_file_leaves_nothing(store: Store) -> None:
    await create(store)
    number = await index(store, "one whale")
    assert await store.vector_stores.remove_file("vs_1", None, "file-one -vs_1")
    assert await find(store, "whale") == []
    assert await store.vector_stores.vectors([number]) == []
    assert await store.vector_stores.chunks_of_file(number, first=0, limit=5) == []
    assert await store.vector_stores.sweep() == 0
    assert not await store.vector_stores.remove_file("vs_1", None, "file-one -vs_1")
    assert await store.files.get("file-one -vs_1", None) is not None


async def test_a_deleted_upload_leaves_its_vector_stores(store: Store) -> None:
    await create(store)
    await index(store, "one whale")
    await store.files.delete("file-one -vs_1", None)
    assert await store.vector_stores.file("vs_1", None, "file-one -vs_1") is None
    assert (await store.vector_stores.searched_files(["vs_1"]))["vs_1"] == []
    stored = await store.vector_stores.get("vs_1", None)
    assert stored is not None
    assert stored.counts.total == 0
    assert await store.vector_stores.sweep() > 0
    assert await find(store, "whale") == []


async def test_a_deleted_vector_store_leaves_nothing(store: Store) -> None:
    await create(store)
    number = await index(store, "one whale")
    assert await store.vector_stores.delete("vs_1", None)
    assert await store.vector_stores.get("vs_1", None) is None
    assert await store.vector_stores.chunks_of_file(number, first=0, limit=5) == []
    assert not await store.vector_stores.delete("vs_1", None)


async def test_a_file_in_progress_is_not_found(store: Store) -> None:
    file = await upload(store, "file-a")
    await create(store, "vs_1", None, file)
    job = await store.vector_stores.take_job()
    assert job is not None
    assert (job.model, job.num_tries) == ("embedder", 1)
    await add_chunks(store, job.number, "a whale")
    assert await store.vector_stores.vectors([job.number]) == []
    assert (await store.vector_stores.searched_files(["vs_1"]))["vs_1"] == []
    assert await store.vector_stores.chunks([ChunkPlace(job.number, 0)]) == []


async def test_words_of_a_file_in_progress_hide_no_other_words(store: Store) -> None:
    await create(store)
    done = await index(store, "one whale and much more about the sea")
    file = await upload(store, "file-b")
    await store.vector_stores.add_files("vs_1", None, [file], max_files=FOREVER)
    job = await store.vector_stores.take_job()
    assert job is not None
    await add_chunks(store, job.number, "whale", "whale")
    words = await store.vector_stores.find_words(["vs_1"], ["whale"], None, limit=1)
    assert words == [ChunkPlace(done, 0)]


async def test_a_job_of_a_dead_server_is_taken_and_begins_anew(opened: OpenStore) -> None:
    dead = await opened(lease_s=0.0)
    file = await upload(dead, "file-a")
    await create(dead, "vs_1", None, file)
    job = await dead.vector_stores.take_job()
    assert job is not None
    assert await add_chunks(dead, job.number, "a whale")
    other = await opened()
    again = await other.vector_stores.take_job()
    assert again is not None
    assert (again.number, again.num_tries) == (job.number, 2)
    assert not await add_chunks(dead, job.number, "a whale")
    assert not await dead.vector_stores.complete(job.number)
    assert await add_chunks(other, job.number, "a seal")
    assert await other.vector_stores.complete(job.number)
    assert await find(other, "whale") == []
    assert await find(other, "seal") == [ChunkPlace(job.number, 0)]


async def test_a_released_job_counts_no_try(store: Store) -> None:
    await create(store, "vs_1", None, await upload(store, "file-a"))
    job = await store.vector_stores.take_job()
    assert job is not None
    await store.vector_stores.release(job.number)
    again = await store.vector_stores.take_job()
    assert again is not None
    assert again.num_tries == 1


async def test_a_failed_file_tells_why(store: Store) -> None:
    await create(store, "vs_1", None, await upload(store, "file-a"))
    job = await store.vector_stores.take_job()
    assert job is not None
    await store.vector_stores.fail(job.number, "unsupported_file", "it is a picture")
    file = await get_file(store, "file-a")
    assert file.status is FileStatus.FAILED
    assert (file.error_code, file.error_message) == ("unsupported_file", "it is a picture")


async def test_another_key_finds_nothing(store: Store) -> None:
    vectors = store.vector_stores
    await create(store, "vs_1", "one", await upload(store, "file-a", "one"))
    assert await vectors.get("vs_1", "two") is None
    assert (await vectors.page("two", CursorRequest(limit=9, is_ascending=True))).stores == ()
    assert not await vectors.delete("vs_1", "two")
    page = CursorRequest(limit=9, is_ascending=True)
    change = StoreChange(name="x", metadata=b"{}", expires_after_days=None)
    for work in (
        vectors.file("vs_1", "two", "file-a"),
        vectors.file_page("vs_1", "two", page),
        vectors.set_attributes("vs_1", "two", "file-a", b"{}"),
        vectors.remove_file("vs_1", "two", "file-a"),
        vectors.change("vs_1", "two", change),
        vectors.batch("vs_1", "two", "vsfb_1"),
        vectors.cancel_batch("vs_1", "two", "vsfb_1"),
        vectors.add_files("vs_1", "two", [], max_files=9),
    ):
        with pytest.raises(VectorStoreNotFound):
            await work
    assert await vectors.get("vs_1", "one") is not None


async def test_pages_of_vector_stores(store: Store) -> None:
    for number in range(5):
        await create(store, f"vs_{number}")

    async def list_ids(**fields: object) -> tuple[list[str], bool]:
        values = {"limit": 2, "is_ascending": True, **fields}
        request = CursorRequest(**values)  # type: ignore[arg-type]
        page = await store.vector_stores.page(None, request)
        return [each.id for each in page.stores], page.has_more

    assert await list_ids() == (["vs_0", "vs_1"], True)
    assert await list_ids(after="vs_3") == (["vs_4"], False)
    assert await list_ids(before="vs_4") == (["vs_2", "vs_3"], True)
    assert await list_ids(before="vs_1") == (["vs_0"], False)
    assert await list_ids(is_ascending=False) == (["vs_4", "vs_3"], True)
    assert await list_ids(is_ascending=False, before="vs_1") == (["vs_3", "vs_2"], True)
    assert await list_ids(after="vs_0", before="vs_2") == (["vs_1"], False)
    with pytest.raises(VectorStoreNotFound):
        await list_ids(after="vs_9")


async def test_pages_of_files_have_one_status_or_batch(store: Store) -> None:
    await create(store)
    await index(store, "one whale")
    file = await upload(store, "file-b")
    await store.vector_stores.add_files("vs_1", None, [file], batch_id="vsfb_1", max_files=FOREVER)
    page = CursorRequest(limit=9, is_ascending=True)

    async def list_ids(**fields: object) -> list[str]:
        list_files = store.vector_stores.file_page
        found = await list_files("vs_1", None, page, **fields)  # type: ignore[arg-type]
        return [each.file_id for each in found.files]

    assert await list_ids() == ["file-one -vs_1", "file-b"]
    assert await list_ids(status=FileStatus.COMPLETED) == ["file-one -vs_1"]
    assert await list_ids(batch_id="vsfb_1") == ["file-b"]
    with pytest.raises(VectorFileNotFound):
        unknown = CursorRequest(limit=9, is_ascending=True, after="file-x")
        await store.vector_stores.file_page("vs_1", None, unknown)


async def test_a_cancelled_batch_ends_its_open_files(store: Store) -> None:
    await create(store)
    files = [await upload(store, f"file-{name}") for name in "ab"]
    await store.vector_stores.add_files("vs_1", None, files, batch_id="vsfb_1", max_files=9)
    job = await store.vector_stores.take_job()
    assert job is not None
    assert await store.vector_stores.complete(job.number)
    batch = await store.vector_stores.cancel_batch("vs_1", None, "vsfb_1")
    assert batch is not None
    assert batch.is_cancelled
    assert (batch.counts.completed, batch.counts.cancelled) == (1, 1)
    assert await store.vector_stores.take_job() is None
    stored = await store.vector_stores.get("vs_1", None)
    assert stored is not None
    assert (stored.counts.total, stored.usage_bytes) == (2, 0)


async def test_attributes_and_values_change(store: Store) -> None:
    await create(store)
    await index(store, "one whale")
    file_id = "file-one -vs_1"
    changed = await store.vector_stores.set_attributes("vs_1", None, file_id, b'{"a":1}')
    assert changed is not None
    assert (await get_file(store, file_id)).attributes == b'{"a":1}'
    change = StoreChange(name="new", metadata=b'{"b":"c"}', expires_after_days=1)
    stored = await store.vector_stores.change("vs_1", None, change)
    assert (stored.name, stored.metadata, stored.expires_after_days) == ("new", b'{"b":"c"}', 1)


async def test_an_expired_vector_store_loses_its_files(store: Store) -> None:
    await create(store)
    number = await index(store, "one whale")
    change = StoreChange(name="", metadata=b"{}", expires_after_days=-1)
    stored = await store.vector_stores.change("vs_1", None, change)
    assert stored.is_expired
    assert await store.sweep() > 0
    assert await store.vector_stores.chunks_of_file(number, first=0, limit=5) == []
    stored = await store.vector_stores.change("vs_1", None, change)
    assert stored.counts.total == 0


async def test_a_file_that_is_added_again_is_indexed_again(store: Store) -> None:
    await create(store)
    number = await index(store, "one whale")
    file = await get_file(store, "file-one -vs_1")
    new = NewVectorFile(file_id=file.file_id, filename="x", attributes=b"{}", strategy=b"{}")
    [added] = await store.vector_stores.add_files("vs_1", None, [new], max_files=1)
    assert added.number > number
    assert added.status is FileStatus.IN_PROGRESS
    assert (await store.vector_stores.searched_files(["vs_1"]))["vs_1"] == []
    another = await upload(store, "file-b")
    with pytest.raises(VectorStoreFull):
        await store.vector_stores.add_files("vs_1", None, [another], max_files=1)
