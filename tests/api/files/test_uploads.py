"""Uploads in parts with the official client: complete, cancelled, expired, and wrong ones."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import openai
import pytest

from ouzel.config import LimitsConfig, ServerConfig
from tests.api.requests import read_error
from tests.api.serving import RunningServer, running_server

LIMITS = LimitsConfig(max_body_bytes=2**16, body_timeout_s=600)
DATA = bytes(n % 251 for n in range(3 * 2**20 + 5))
MD5 = hashlib.md5(DATA, usedforsecurity=False).hexdigest()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "responses.sqlite3"


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[RunningServer]:
    with running_server(
        limits=LIMITS,
        config=ServerConfig(api_key=("one", "two")),
        store_url=f"sqlite:///{file}",
    ) as server:
        yield server


@pytest.fixture
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="one", max_retries=0) as client:
        yield client


def begin(client: openai.OpenAI, num_bytes: int) -> str:
    return client.uploads.create(
        bytes=num_bytes, filename="ä.bin", mime_type="text/plain", purpose="user_data"
    ).id


def add(client: openai.OpenAI, upload_id: str, data: bytes) -> str:
    return client.uploads.parts.create(upload_id, data=data).id


def count_pieces(file: Path) -> int:
    with closing(sqlite3.connect(file)) as database:
        num: int = database.execute("SELECT count(*) FROM file_pieces").fetchone()[0]
    return num


def test_the_client_uploads_a_file_in_parts(client: openai.OpenAI, file: Path) -> None:
    upload = client.uploads.upload_file_chunked(
        file=DATA,
        filename="a.bin",
        bytes=len(DATA),
        mime_type="application/octet-stream",
        purpose="user_data",
        part_size=2**20 + 7,
        md5=MD5,
    )
    assert (upload.object, upload.status, upload.bytes) == ("upload", "completed", len(DATA))
    assert upload.expires_at - upload.created_at == 3600
    assert upload.file is not None
    assert (upload.file.bytes, upload.file.purpose) == (len(DATA), "user_data")
    assert client.files.retrieve(upload.file.id) == upload.file
    assert client.files.content(upload.file.id).read() == DATA
    assert [each.id for each in client.files.list()] == [upload.file.id]
    client.files.delete(upload.file.id)
    assert count_pieces(file) == 0


def test_parts_may_come_in_any_order_and_may_be_left_out(client: openai.OpenAI, file: Path) -> None:
    upload_id = begin(client, 4)
    second, left_out, first = (add(client, upload_id, data) for data in (b"cd", b"xxx", b"ab"))
    completed = client.uploads.complete(upload_id, part_ids=[first, second])
    assert completed.file is not None
    assert client.files.content(completed.file.id).read() == b"abcd"
    assert count_pieces(file) == 2, left_out
    client.files.delete(completed.file.id)
    assert count_pieces(file) == 0


def test_an_empty_file_and_a_lifetime(client: openai.OpenAI) -> None:
    upload = client.uploads.create(
        bytes=0,
        filename="empty",
        mime_type="text/plain",
        purpose="batch",
        expires_after={"anchor": "created_at", "seconds": 3600},
    )
    assert (upload.status, upload.file) == ("pending", None)
    file = client.uploads.complete(upload.id, part_ids=[]).file
    assert file is not None and file.expires_at is not None
    assert abs(file.expires_at - file.created_at - 3600) <= 1
    assert client.files.content(file.id).read() == b""
    client.files.delete(file.id)


def test_wrong_parts_are_refused_and_the_upload_stays_open(client: openai.OpenAI) -> None:
    upload_id, other_id = begin(client, 4), begin(client, 2)
    part, foreign = add(client, upload_id, b"abcd"), add(client, other_id, b"ab")
    wrong: list[tuple[list[str], str | None, str, str]] = [
        ([foreign], None, "part_ids[0]", "must be the id of a part of this upload"),
        ([part, part], None, "part_ids[1]", "must be given once"),
        ([], None, "part_ids", "must have 4 bytes together, as the upload announced, given 0"),
        ([part], MD5, "md5", "must be the checksum of the content, e2fc714c4727ee93"),
        ([part], "abc", "md5", "must"),
    ]
    for part_ids, md5, param, complaint in wrong:
        with pytest.raises(openai.BadRequestError) as raised:
            client.uploads.complete(
                upload_id, part_ids=part_ids, md5=openai.omit if md5 is None else md5
            )
        assert raised.value.param == param
        assert complaint in str(raised.value)
    file = client.uploads.complete(upload_id, part_ids=[part]).file
    assert file is not None
    client.files.delete(file.id)
    client.uploads.cancel(other_id)


def test_an_upload_ends_once(client: openai.OpenAI, file: Path) -> None:
    upload_id = begin(client, 2)
    part = add(client, upload_id, b"ab")
    assert client.uploads.cancel(upload_id).status == "cancelled"
    assert count_pieces(file) == 0
    for act in (
        lambda: client.uploads.cancel(upload_id),
        lambda: client.uploads.complete(upload_id, part_ids=[part]),
        lambda: client.uploads.parts.create(upload_id, data=b"x"),
    ):
        with pytest.raises(openai.BadRequestError, match="its status is cancelled") as raised:
            act()
        assert raised.value.param == "upload_id"
    assert count_pieces(file) == 0


def test_an_upload_expires(client: openai.OpenAI, file: Path) -> None:
    upload_id = begin(client, 2)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE uploads SET expires_at = 1 WHERE id = ?", (upload_id,))
    with pytest.raises(openai.BadRequestError, match="its status is expired"):
        add(client, upload_id, b"ab")


def test_another_key_does_not_see_an_upload(server: RunningServer, client: openai.OpenAI) -> None:
    upload_id = begin(client, 2)
    part = add(client, upload_id, b"ab")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="two", max_retries=0) as other:
        for act in (
            lambda: other.uploads.cancel(upload_id),
            lambda: other.uploads.complete(upload_id, part_ids=[part]),
            lambda: other.uploads.parts.create(upload_id, data=b"x"),
        ):
            with pytest.raises(openai.NotFoundError, match="No such Upload object"):
                act()
    client.uploads.cancel(upload_id)


def test_a_wrong_upload_or_part_is_refused(server: RunningServer, file: Path) -> None:
    good = {"bytes": 1, "filename": "a", "mime_type": "a/b", "purpose": "batch"}
    headers = {"authorization": "Bearer one"}
    with httpx.Client(base_url=server.url, timeout=None, headers=headers) as http:
        for changed, param in (
            ({"bytes": 8 * 2**30 + 1}, "bytes"),
            ({"bytes": -1}, "bytes"),
            ({"purpose": "love"}, "purpose"),
            ({"filename": ""}, "filename"),
            ({"expires_after": {"anchor": "created_at", "seconds": 1}}, "expires_after.seconds"),
        ):
            refused = http.post("/v1/uploads", json={**good, **changed})
            assert (refused.status_code, read_error(refused)["param"]) == (400, param)
        upload_id = http.post("/v1/uploads", json=good).json()["id"]
        path = f"/v1/uploads/{upload_id}/parts"
        for files, complaint in (
            ({"other": b"x"}, "other must not be a file"),
            ({"data": b"x" * (64 * 2**20 + 1)}, "data must be <= 67108864 bytes long"),
        ):
            refused = http.post(path, files=files)
            assert refused.status_code in (400, 413)
            assert complaint in read_error(refused)["message"]
        without = http.post(path, files={"data": (None, b"x")})
        assert "data is required, as a file" in read_error(without)["message"]
        assert count_pieces(file) == 0
        http.post(f"/v1/uploads/{upload_id}/cancel")


def test_without_a_store_uploads_are_refused() -> None:
    body = {"bytes": 1, "filename": "a", "mime_type": "a/b", "purpose": "batch"}
    with running_server() as server, server.client() as http:
        refused = http.post("/v1/uploads", json=body)
        assert "this server stores nothing" in read_error(refused)["message"]
        assert http.post("/v1/uploads/upload_1/cancel").status_code == 404
