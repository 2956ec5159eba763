"""The official client makes containers, and puts files into them."""

from collections.abc import Callable, Iterator

import httpx
import openai
import pytest

from ouzel.config import ServerConfig
from ouzel.hosted_tools.code_interpreter.containers import Containers
from tests.api.requests import read_error
from tests.api.serving import RunningServer, running_server
from tests.hosted_tools.code_interpreter.sandboxes import (
    LIMITS,
    make_plan,
    skip_without_sandbox,
)

KEYS = ("first-key", "second-key")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    skip_without_sandbox()
    path = tmp_path_factory.mktemp("store") / "files.sqlite3"
    containers = Containers(make_plan(), max_containers=6, idle_s=1200)
    with running_server(
        config=ServerConfig(api_key=KEYS),
        store_url=f"sqlite:///{path}",
        containers=containers,
        max_file_bytes=64 * 2**20,
    ) as server:
        yield server


@pytest.fixture
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEYS[0], max_retries=0) as client:
        yield client
        for container in client.containers.list():
            client.containers.delete(container.id)


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        http.headers["authorization"] = f"Bearer {KEYS[0]}"
        yield http


def test_containers_are_made_listed_and_deleted(client: openai.OpenAI) -> None:
    made = [client.containers.create(name=name) for name in ("a", "b", "c")]
    assert made[0].object == "container" and made[0].status == "running"
    assert made[0].expires_after is not None and made[0].expires_after.minutes == 20
    assert client.containers.retrieve(made[1].id).name == "b"
    listed = [each.id for each in client.containers.list(limit=2)]  # pages follow by themselves
    assert listed == [each.id for each in reversed(made)]
    assert [each.name for each in client.containers.list(order="asc", limit=1)] == ["a", "b", "c"]
    assert [each.name for each in client.containers.list(name="b")] == ["b"]
    client.containers.delete(made[0].id)
    with pytest.raises(openai.NotFoundError, match="does not exist, or it has expired"):
        client.containers.retrieve(made[0].id)


def test_files_are_put_in_listed_read_and_deleted(client: openai.OpenAI) -> None:
    container = client.containers.create(name="a")
    content = b"x" * (2 * 2**20 + 5)
    put = client.containers.files.create(container.id, file=("data.bin", content))
    assert (put.path, put.bytes, put.source) == ("/mnt/data/data.bin", len(content), "user")
    read = client.containers.files.content.retrieve(put.id, container_id=container.id)
    assert read.read() == content
    upload = client.files.create(file=("up.txt", b"uploaded"), purpose="user_data")
    copied = client.containers.files.create(container.id, file_id=upload.id)
    assert copied.path == "/mnt/data/up.txt"
    listed = client.containers.files.list(container.id, order="asc")
    assert [file.path for file in listed] == ["/mnt/data/data.bin", "/mnt/data/up.txt"]
    found = client.containers.files.retrieve(copied.id, container_id=container.id)
    assert found.bytes == len(b"uploaded")
    client.containers.files.delete(put.id, container_id=container.id)
    with pytest.raises(openai.NotFoundError):
        client.containers.files.retrieve(put.id, container_id=container.id)


def test_a_container_begins_with_uploaded_files(client: openai.OpenAI) -> None:
    upload = client.files.create(file=("up.txt", b"uploaded"), purpose="user_data")
    container = client.containers.create(name="a", file_ids=[upload.id])
    assert [file.path for file in client.containers.files.list(container.id)] == [
        "/mnt/data/up.txt"
    ]


def test_a_client_finds_only_its_own_containers(client: openai.OpenAI) -> None:
    container = client.containers.create(name="a")
    put = client.containers.files.create(container.id, file=("a", b"secret"))
    upload = client.files.create(file=("up.txt", b"uploaded"), purpose="user_data")
    other = client.with_options(api_key=KEYS[1])
    assert list(other.containers.list()) == []
    attempts: list[Callable[[], object]] = [
        lambda: other.containers.retrieve(container.id),
        lambda: other.containers.delete(container.id),
        lambda: other.containers.files.list(container.id),
        lambda: other.containers.files.content.retrieve(put.id, container_id=container.id),
        lambda: other.containers.files.create(container.id, file=("b", b"x")),
    ]
    for attempt in attempts:
        with pytest.raises(openai.NotFoundError):
            attempt()
    with pytest.raises(openai.BadRequestError, match="must be the id of an uploaded file"):
        other.containers.create(name="b", file_ids=[upload.id])


def test_a_full_server_tells_when_to_try_again(http: httpx.Client, client: openai.OpenAI) -> None:
    for _ in range(6):
        client.containers.create(name="a")
    answer = http.post("/v1/containers", json={"name": "a"})
    assert answer.status_code == 429 and answer.headers["retry-after"] == "60"
    assert "6 containers" in read_error(answer)["message"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "name is required"),
        ({"memory_limit": "64g"}, "memory_limit must be <= 0.25g"),
        ({"expires_after": {"anchor": "last_active_at", "minutes": 21}}, "must be <= 20"),
        ({"expires_after": {"anchor": "created_at", "minutes": 2}}, "expires_after.anchor must be"),
        ({"network_policy": {"type": "allowlist"}}, "network_policy.type must be"),
        (
            {"file_ids": ["file-x"]},
            'file_ids[0] must be the id of an uploaded file, given "file-x"',
        ),
    ],
)
def test_wrong_containers_are_refused(
    http: httpx.Client, fields: dict[str, object], message: str
) -> None:
    body = {"name": "a", **fields} if fields else {}
    answer = http.post("/v1/containers", json=body)
    assert answer.status_code == 400 and message in read_error(answer)["message"]


def test_wrong_files_are_refused(http: httpx.Client, client: openai.OpenAI) -> None:
    path = f"/v1/containers/{client.containers.create(name='a').id}/files"
    cases: list[tuple[dict[str, object], int, str]] = [
        (
            {"files": {"file": ("a", b"x" * (LIMITS.file_bytes + 2**21))}},
            413,
            "must be <= 16777216",
        ),
        ({"files": {"other": ("a", b"x")}}, 400, "other must not be a file"),
        ({"files": {"file": ("..", b"x")}}, 400, "file must be a printable name"),
        ({"json": {"file_id": "file-x"}}, 400, "file_id must be the id of an uploaded file"),
        ({"json": {}}, 400, "file_id is required"),
        ({"files": {"file": ("a", b"x"), "second": ("b", b"x")}}, 400, "must be given once"),
    ]
    for given, status, message in cases:
        answer = http.post(path, **given)  # type: ignore[arg-type]  # arguments of two kinds
        assert answer.status_code == status, answer.text
        assert message in read_error(answer)["message"]
    assert http.get(path).json()["data"] == []
