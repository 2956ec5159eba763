"""Tests uploads in parts: their files, sweeps, and the limit of all files."""

import asyncio
import itertools

import pytest

from ouzel.store.base import Store
from ouzel.store.errors import FilesFull, UploadEnded
from ouzel.store.files.records import NewFile
from ouzel.store.sql_store import open_store
from ouzel.store.uploads.records import NewUpload, UploadStatus

HOUR_S = 3600.0


def new_upload(
    num_bytes: int, *, upload_id: str = "upload_1", expires_after_s: float = HOUR_S
) -> NewUpload:
    return NewUpload(
        id=upload_id,
        key_id="key",
        filename="a.txt",
        purpose="batch",
        num_bytes=num_bytes,
        expires_after_s=expires_after_s,
        file_expires_after_s=None,
    )


async def add_part(store: Store, part_id: str, *pieces: bytes, upload_id: str = "upload_1") -> None:
    await store.files.begin(NewFile(id=part_id, key_id="key", filename="data"))
    for number, piece in enumerate(pieces):
        await store.files.add_piece(part_id, number, piece)
    await store.uploads.finish_part(upload_id, part_id, "key")


async def read(store: Store, file_id: str) -> bytes:
    return b"".join([piece async for piece in store.files.read(file_id, "key")])


async def test_parts_become_a_file_in_the_order_of_the_completion(store: Store) -> None:
    await store.uploads.create(new_upload(5))
    await add_part(store, "part_1", b"d", b"e")
    await add_part(store, "part_2", b"ab", b"c")
    assert await store.files.get("part_1", "key") is None
    completed, file = await store.uploads.complete("upload_1", "key", "f", ["part_2", "part_1"])
    assert (completed.status, file.size_bytes) == (UploadStatus.COMPLETED, 5)
    assert await read(store, "f") == b"abcde"
    await store.sweep()
    assert await read(store, "f") == b"abcde"
    assert await store.files.delete("f", "key")
    assert await store.files.sweep() == 0


async def test_an_expired_upload_is_swept_with_its_parts(store: Store) -> None:
    upload_id, part_id = await begin_short_upload(store)
    upload = await store.uploads.get(upload_id, "key")
    while upload is not None and upload.status is UploadStatus.PENDING:
        upload = await store.uploads.get(upload_id, "key")
    assert upload is not None and upload.status is UploadStatus.EXPIRED
    await store.uploads.sweep()
    assert await store.files.sweep() == 1
    with pytest.raises(UploadEnded, match="expired"):
        await store.uploads.complete(upload_id, "key", "f", [part_id])


async def begin_short_upload(store: Store) -> tuple[str, str]:
    """Begins an upload that expires soon, and returns its id and the id of its part."""
    for attempt in itertools.count():
        upload_id, part_id = f"upload_{attempt}", f"part_{attempt}"
        lifetime_s = 0.1 * 2**attempt
        await store.uploads.create(new_upload(1, upload_id=upload_id, expires_after_s=lifetime_s))
        try:
            await add_part(store, part_id, b"a", upload_id=upload_id)
        except UploadEnded:  # a busy machine
            await store.files.drop(part_id)
        else:
            return upload_id, part_id
    raise AssertionError


async def test_an_upload_is_completed_once(store: Store) -> None:
    await store.uploads.create(new_upload(1))
    await add_part(store, "part_1", b"a")
    outcomes = await asyncio.gather(
        *(store.uploads.complete("upload_1", "key", f"f{n}", ["part_1"]) for n in range(4)),
        return_exceptions=True,
    )
    assert [type(each) for each in outcomes].count(tuple) == 1
    assert [type(each) for each in outcomes].count(UploadEnded) == 3


async def test_uploads_at_the_same_time_do_not_exceed_the_limit(store_url: str) -> None:
    stores = [
        await open_store(store_url, max_age_s=3600, max_bytes=2**30, max_file_bytes=10)
        for _ in range(2)
    ]
    try:
        for number in range(8):
            await stores[0].files.begin(NewFile(id=f"f{number}", key_id="key", filename="a"))
        outcomes = await asyncio.gather(
            *(stores[n % 2].files.add_piece(f"f{n}", 0, b"1234") for n in range(8)),
            return_exceptions=True,
        )
        assert [type(each) for each in outcomes].count(FilesFull) == 6
    finally:
        for store in stores:
            await store.close()
