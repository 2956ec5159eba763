"""The Files API: uploads with the official client, lists, contents, and hostile uploads."""

import socket
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

MAX_BYTES = 3 * 2**20
LIMITS = LimitsConfig(max_body_bytes=2**16, body_timeout_s=600)
FORM = "multipart/form-data; boundary=b"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store") / "responses.sqlite3"


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[RunningServer]:
    with running_server(
        limits=LIMITS,
        config=ServerConfig(api_key=("one", "two")),
        store_url=f"sqlite:///{file}",
        max_file_bytes=MAX_BYTES,
    ) as server:
        yield server


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    headers = {"authorization": "Bearer one"}
    with httpx.Client(base_url=server.url, timeout=None, headers=headers) as client:
        yield client


@pytest.fixture
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="one", max_retries=0) as client:
        yield client


@pytest.fixture(autouse=True)
def nothing_is_left(file: Path, server: RunningServer) -> Iterator[None]:
    """Checks that no broken upload stays in the store."""
    yield
    with closing(sqlite3.connect(file)) as database:
        query = "SELECT id FROM files WHERE NOT is_complete OR is_hidden"
        assert database.execute(query).fetchall() == []
        owners = "SELECT DISTINCT file_id FROM file_pieces EXCEPT SELECT id FROM files"
        assert database.execute(owners).fetchall() == []


@pytest.mark.parametrize("num_bytes", [0, 1, 2**20, MAX_BYTES])
def test_a_file_comes_back_as_it_was_sent(client: openai.OpenAI, num_bytes: int) -> None:
    data = bytes(n % 251 for n in range(num_bytes))
    sent = client.files.create(file=("données\r\n.bin", data), purpose="user_data")
    assert (sent.bytes, sent.purpose, sent.status) == (num_bytes, "user_data", "processed")
    assert client.files.retrieve(sent.id) == sent
    assert client.files.content(sent.id).read() == data
    assert client.files.delete(sent.id).deleted
    with pytest.raises(openai.NotFoundError, match="No such File object"):
        client.files.retrieve(sent.id)


@pytest.mark.parametrize(
    ("wanted", "first", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=1048570-1048590", 1048570, 1048591),
        ("bytes=2500000-", 2500000, None),
        ("bytes=-5", -5, None),
        ("bytes=10-999999999", 10, None),
    ],
)
@pytest.mark.parametrize("part_size", [None, 700_001])
def test_a_range_of_a_file_is_sent(
    *,
    client: openai.OpenAI,
    http: httpx.Client,
    wanted: str,
    first: int,
    end: int | None,
    part_size: int | None,
) -> None:
    data = bytes(n % 251 for n in range(2_600_000))
    if part_size is None:
        file_id = client.files.create(file=data, purpose="user_data").id
    else:
        sent = client.uploads.upload_file_chunked(
            file=data,
            filename="a",
            bytes=len(data),
            mime_type="a/b",
            purpose="user_data",
            part_size=part_size,
        )
        assert sent.file is not None
        file_id = sent.file.id
    answer = http.get(f"/v1/files/{file_id}/content", headers={"range": wanted})
    at, until = first % len(data), len(data) if end is None else end
    assert answer.status_code == 206
    assert answer.content == data[at:until]
    assert answer.headers["content-range"] == f"bytes {at}-{until - 1}/{len(data)}"
    client.files.delete(file_id)


def test_a_range_behind_the_end_is_refused_and_others_are_ignored(
    client: openai.OpenAI, http: httpx.Client
) -> None:
    sent = client.files.create(file=b"abc", purpose="user_data")
    path = f"/v1/files/{sent.id}/content"
    assert http.get(path, headers={"range": "bytes=3-"}).status_code == 416
    for wanted in ("lines=1-2", "bytes=0-0,2-2", "bytes=2-1", "bytes=-", "x"):
        answer = http.get(path, headers={"range": wanted})
        assert (answer.status_code, answer.content) == (200, b"abc")
    client.files.delete(sent.id)


def test_files_are_listed_newest_first(client: openai.OpenAI) -> None:
    made = [client.files.create(file=b"x", purpose="batch").id for _ in range(3)]
    assert [file.id for file in client.files.list(purpose="batch", limit=2)] == made[::-1]
    assert [file.id for file in client.files.list(order="asc", after=made[0])] == made[1:]
    assert [file.id for file in client.files.list(purpose="vision")] == []
    for file_id in made:
        client.files.delete(file_id)


def test_a_file_expires(client: openai.OpenAI) -> None:
    sent = client.files.create(
        file=b"x", purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    assert sent.expires_at is not None
    assert abs(sent.expires_at - sent.created_at - 3600) <= 1
    client.files.delete(sent.id)


def test_another_key_does_not_see_a_file(server: RunningServer, client: openai.OpenAI) -> None:
    sent = client.files.create(file=b"x", purpose="batch")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="two", max_retries=0) as other:
        assert list(other.files.list()) == []
        for ask in (other.files.retrieve, other.files.content, other.files.delete):
            with pytest.raises(openai.NotFoundError):
                ask(sent.id)
    client.files.delete(sent.id)


def test_a_name_cannot_break_out_of_a_header(http: httpx.Client) -> None:
    name = 'x"; \r\nset-cookie: a=b/../../etc/passwd'
    sent = http.post("/v1/files", files={"file": (name, b"x")}, data={"purpose": "batch"}).json()
    answer = http.get(f"/v1/files/{sent['id']}/content")
    assert "set-cookie" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == "application/octet-stream"
    http.delete(f"/v1/files/{sent['id']}")


def part(name: str, data: bytes, filename: str | None = None) -> bytes:
    named = "" if filename is None else f'; filename="{filename}"'
    head = f'--b\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode() + data + b"\r\n"


END = b"--b--\r\n"
PURPOSE = part("purpose", b"batch")
FILE = part("file", b"x", "a.txt")


@pytest.mark.parametrize(
    ("content_type", "body", "status", "message"),
    [
        ("application/json", b"{}", 400, "Content-Type must be multipart/form-data"),
        ("multipart/form-data", b"", 400, "Content-Type must be multipart/form-data"),
        (FORM, b"", 400, "its last boundary is missing"),
        (FORM, b"nonsense", 400, "the body is not a valid form"),
        (FORM, PURPOSE + FILE, 400, "its last boundary is missing"),
        (FORM, FILE + END, 400, "purpose is required"),
        (FORM, part("purpose", b"love") + FILE + END, 400, "purpose must be one of assistants"),
        (FORM, PURPOSE + END, 400, "file is required"),
        (FORM, PURPOSE + part("file", b"x") + END, 400, "file is required"),
        (FORM, PURPOSE + FILE + FILE + END, 400, "file must be given once"),
        (FORM, PURPOSE + part("other", b"x", "a") + END, 400, "other must not be a file"),
        (FORM, part("purpose", b"x" * 70_000) + END, 400, "purpose must be <= 65536 bytes"),
        (FORM, PURPOSE + part("file", b"x", "n" * 2000) + END, 400, "must have a name of"),
        (FORM, PURPOSE * 40 + FILE + END, 400, "the form must have <= 32 fields"),
        (
            FORM,
            PURPOSE + part("expires_after[seconds]", b"10") + FILE + END,
            400,
            "expires_after[anchor] must be created_at",
        ),
        (
            FORM,
            part("expires_after[anchor]", b"created_at")
            + part("expires_after[seconds]", b"9" * 5000)
            + PURPOSE
            + FILE
            + END,
            400,
            "expires_after[seconds] must be an integer",
        ),
        (FORM, PURPOSE + part("file", b"x" * (MAX_BYTES + 1), "a") + END, 413, "max_file_bytes"),
        (FORM, PURPOSE + FILE + END + b"x" * (MAX_BYTES + 2**20), 413, "max_file_bytes"),
        (FORM, b"--b\r\n" + b"H: x\r\n" * 50, 400, "the body is not a valid form"),
        (FORM, b"--b\r\n" + b"H" * 100_000, 400, "the body is not a valid form"),
    ],
)
def test_a_wrong_upload_is_refused_and_leaves_nothing(
    http: httpx.Client, content_type: str, body: bytes, status: int, message: str
) -> None:
    answer = http.post("/v1/files", content=body, headers={"content-type": content_type})
    assert answer.status_code == status, answer.text
    assert message in read_error(answer)["message"]


def test_fields_may_come_after_the_file(http: httpx.Client) -> None:
    answer = http.post("/v1/files", content=FILE + PURPOSE + END, headers={"content-type": FORM})
    assert answer.status_code == 200, answer.text
    http.delete(f"/v1/files/{answer.json()['id']}")


def test_an_upload_that_breaks_off_leaves_nothing(server: RunningServer, file: Path) -> None:
    host, _, port = server.url.removeprefix("http://").partition(":")
    head = (
        f"POST /v1/files HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer one\r\n"
        f"Content-Type: {FORM}\r\nContent-Length: 3000000\r\n\r\n"
    ).encode()
    query = "SELECT count(*) FROM files WHERE NOT is_complete"
    with closing(sqlite3.connect(file)) as database:
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head + PURPOSE + part("file", b"x" * 10**6, "a"))
            while database.execute(query).fetchone() == (0,):
                pass
        while database.execute(query).fetchone() != (0,):
            pass


def test_without_a_store_uploads_are_refused() -> None:
    with running_server() as server, server.client() as client:
        answer = client.post("/v1/files", files={"file": b"x"}, data={"purpose": "batch"})
        assert "this server stores nothing" in read_error(answer)["message"]
        assert client.get("/v1/files").json()["data"] == []
        assert client.get("/v1/files/file-1").status_code == 404
