from pathlib import Path

import pytest

from ouzel.config import StoreConfig
from ouzel.options.command_line import read_command_line
from ouzel.serve.open_store import open_configured_store
from ouzel.store.errors import StoreOpenError


async def test_without_options_the_store_is_a_file_that_only_its_owner_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    store = await open_configured_store(StoreConfig())
    assert store is not None
    await store.close()
    file = tmp_path / "ouzel" / "responses.sqlite3"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


async def test_the_data_directory_and_the_url_move_the_store(tmp_path: Path) -> None:
    for config in (
        StoreConfig(data_dir=f"{tmp_path}/here?50%25"),
        StoreConfig(
            data_dir=f"{tmp_path}/nowhere", store_url=f"sqlite:///{tmp_path}/there %41/my.db"
        ),
    ):
        store = await open_configured_store(config)
        assert store is not None
        await store.close()
    assert files_below(tmp_path) == [
        f"{path}{suffix}"
        for path in ("here?50%25/responses.sqlite3", "there %41/my.db")
        for suffix in ("", "-reserve")
    ]


async def test_no_store_makes_no_file(tmp_path: Path) -> None:
    assert await open_configured_store(StoreConfig(store=False, data_dir=str(tmp_path))) is None
    assert files_below(tmp_path) == []


def files_below(directory: Path) -> list[str]:
    return sorted(
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "mysql://root:secret@host/name",
            "must begin with sqlite:/// or postgresql://, given mysql://",
        ),
        ("secret", "must be like sqlite:///PATH"),
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("sqlite:////proc/none/secret/x.db", "cannot be created"),
        ("postgresql://user:secret@127.0.0.1:1/name", "refused"),
        ("postgresql://user:secret@127.0.0.1:port/name", "must be like postgresql://"),
        (
            "postgresql://user:secret@127.0.0.1:1/name?nonsense=secret",
            "cannot be opened: .*nonsense",
        ),
    ],
)
async def test_a_store_that_cannot_be_used_is_named_without_its_password(
    url: str, message: str
) -> None:
    with pytest.raises(StoreOpenError, match=message) as caught:
        await open_configured_store(StoreConfig(store_url=url))
    assert "--no-store" in str(caught.value)
    assert "secret@" not in str(caught.value)


def test_the_options_of_the_store_are_flags_and_variables() -> None:
    options = read_command_line(
        ["--no-store", "--store-max-gib", "0.5"],
        {
            "OUZEL_STORE_URL": "postgresql://host/name",
            "OUZEL_STORE_MAX_AGE_DAYS": "7",
            "OUZEL_DATA_DIR": "/data",
        },
    )
    assert options.store == StoreConfig(
        store=False,
        store_url="postgresql://host/name",
        store_max_age_days=7.0,
        store_max_gib=0.5,
        data_dir="/data",
    )
