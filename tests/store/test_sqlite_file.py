"""The file of a store may be deleted, replaced or somebody else's."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ouzel.store.base import Store
from ouzel.store.errors import StoreOpenError, StoreUnavailable
from ouzel.store.sql_store import open_store
from tests.store.making import new_response


async def open_file(file: Path) -> Store:
    return await open_store(f"sqlite:///{file}", max_age_s=3600, max_bytes=2**30)


def move(file: Path, name: str) -> Path:
    return file.rename(file.with_name(name))


async def has(file: Path, response_id: str) -> bool:
    """Tells whether the next server finds the response."""
    store = await open_file(file)
    response = await store.response(response_id, "key")
    await store.close()
    return response is not None


def remove(file: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        file.with_name(f"{file.name}{ending}").unlink()


def list_names_beside(file: Path) -> list[str]:
    return sorted(path.name for path in file.parent.iterdir())


def read_content(file: Path) -> bytes:
    return file.read_bytes()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "responses.sqlite3"


async def test_a_file_that_is_gone_is_noticed_at_once_and_used_again_when_it_is_back(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = await open_file(file)
    await store.add_response(new_response("resp_1"))
    aside = move(file, "aside")
    for _ in range(3):
        with pytest.raises(
            StoreUnavailable, match=r"^the store cannot be used now: its file is gone$"
        ):
            await store.add_response(new_response("resp_2"))
        with pytest.raises(StoreUnavailable, match="its file is gone"):
            await store.response("resp_1", "key")
    assert file.name not in list_names_beside(file)
    assert (
        caplog.text.count(
            f"the store's file is gone: [Errno 2] No such file or directory: '{file}'"
        )
        == 1
    )
    move(aside, file.name)
    assert await store.response("resp_1", "key") is not None
    await store.add_response(new_response("resp_2"))
    await store.close()
    assert await has(file, "resp_2")


async def test_another_store_in_its_place_is_opened(file: Path) -> None:
    store = await open_file(file)
    await store.add_response(new_response("resp_1"))
    await store.close()
    copy = shutil.copy(file, file.with_name("copy"))
    store = await open_file(file)
    await store.add_response(new_response("resp_2"))
    remove(file)
    shutil.copy(copy, file)
    assert await store.response("resp_2", "key") is None
    assert await store.response("resp_1", "key") is not None
    await store.add_response(new_response("resp_3"))
    await store.close()
    assert await has(file, "resp_3")


def make_theirs(file: Path, *statements: str) -> bytes:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for statement in ("CREATE TABLE theirs (x)", "INSERT INTO theirs VALUES (1)", *statements):
            connection.execute(statement)
    return file.read_bytes()


async def test_a_foreign_file_in_its_place_is_left_alone(file: Path, tmp_path: Path) -> None:
    store = await open_file(file)
    theirs = make_theirs(tmp_path / "theirs")
    remove(file)
    shutil.copy(tmp_path / "theirs", file)
    with pytest.raises(
        StoreUnavailable,
        match=r"^the store cannot be used now: its file has been replaced by another$",
    ):
        await store.add_response(new_response("resp_1"))
    await store.close()
    assert read_content(file) == theirs


@pytest.mark.parametrize(
    "statements",
    [
        ("PRAGMA application_id = 7",),
        ("CREATE TABLE schema_version (version)", "INSERT INTO schema_version VALUES (1)"),
        ("DROP TABLE theirs", "PRAGMA application_id = 7"),
    ],
)
async def test_a_file_of_another_program_ends_the_start_and_is_left_alone(
    file: Path, statements: tuple[str, ...]
) -> None:
    theirs = make_theirs(file, *statements)
    with pytest.raises(
        StoreOpenError, match=f"^{file} is a database of another program; it is left unchanged$"
    ):
        await open_file(file)
    assert read_content(file) == theirs
    assert list_names_beside(file) == [file.name]


async def test_a_store_of_before_that_does_not_say_whose_it_is_is_opened(file: Path) -> None:
    store = await open_file(file)
    await store.add_response(new_response("resp_1"))
    await store.close()
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA application_id = 0")
    assert await has(file, "resp_1")
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (0x4F757A6C,)
