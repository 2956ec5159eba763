"""`ouzel pull` is safe with a hostile hub: it writes only into the cache, and never without end."""

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_pull import environment, pull
from tests.model_store.hub import REVISION, Hub, serving_hub
from tests.release_only import release_only

FURTHER = "further answers of a hub that means harm"
SIZE = 9 * 2**20  # large enough for Ouzel's own download


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    directory = tmp_path / "repository"
    directory.mkdir()
    (directory / "config.json").write_text('{"model_type": "qwen3"}')
    (directory / "model.safetensors").write_bytes(bytes(SIZE))
    with serving_hub(directory) as hub:
        yield hub


def find_files_outside(tmp_path: Path) -> list[Path]:
    known = [tmp_path / "repository", tmp_path / "hf" / "hub" / "models--owner--model"]
    known += [tmp_path / "hf" / "hub" / ".locks", tmp_path / "cache"]
    paths = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "CACHEDIR.TAG"]
    return [path for path in paths if not any(path.is_relative_to(each) for each in known)]


def pull_refused(hub: Hub, tmp_path: Path) -> str:
    status, output, errors = pull("owner/model", env=environment(tmp_path, hub.url))
    assert status != 0
    assert output == ""
    assert find_files_outside(tmp_path) == []
    return errors


@pytest.mark.release("hubs that answer nonsense")
@pytest.mark.parametrize(
    "etag", ["../../../../evil", "x" * 300, *release_only(FURTHER, "/evil", "..", "a/b")]
)
def test_an_etag_that_is_a_path_is_refused(etag: str, hub: Hub, tmp_path: Path) -> None:
    hub.etag = f"{tmp_path}{etag}" if etag == "/evil" else etag
    assert "which cannot be the name of a file" in pull_refused(hub, tmp_path)


@pytest.mark.parametrize(
    "revision", ["../../../evil", "main\x1b[2J", *release_only(FURTHER, "..", "")]
)
def test_a_revision_that_is_a_path_is_refused(revision: str, hub: Hub, tmp_path: Path) -> None:
    hub.revision = revision
    errors = pull_refused(hub, tmp_path)
    assert "the hub gives the revision" in errors
    assert "\x1b" not in errors


@pytest.mark.release("hubs that answer nonsense")
@pytest.mark.parametrize(
    "name",
    [
        "../../../../evil.json",
        "/evil.json",
        *release_only(FURTHER, "a/../../../../../evil.json", "..\\evil.json"),
    ],
)
def test_a_file_that_would_lie_outside_of_the_cache_is_refused(
    name: str, hub: Hub, tmp_path: Path
) -> None:
    hub.more_names = (name,)
    assert "whose path leads out of the cache" in pull_refused(hub, tmp_path)


def test_a_file_without_an_end_is_given_up_where_it_should_end(hub: Hub, tmp_path: Path) -> None:
    hub.is_endless = True
    (hub.directory / "config.json").unlink()  # the hub's own library downloads small files
    assert f"model.safetensors is longer than the {SIZE} bytes that the hub says" in pull_refused(
        hub, tmp_path
    )
    [incomplete] = (tmp_path / "hf").rglob("*.incomplete")
    assert incomplete.stat().st_size == 0


@pytest.mark.release("hubs that answer nonsense")
@pytest.mark.parametrize(
    "path", ["/api/models/owner/model", "/config.json", *release_only(FURTHER, "/tree/")]
)
def test_an_answer_without_an_end_is_given_up(path: str, hub: Hub, tmp_path: Path) -> None:
    """The hub's own library reads these: a description into memory, a small file onto the disk."""
    hub.endless = path
    assert "an answer of the hub is longer than 64 MiB" in pull_refused(hub, tmp_path)
    assert all(
        path.stat().st_size <= 64 * 2**20 for path in (tmp_path / "hf").rglob("*") if path.is_file()
    )


def test_an_answer_that_is_compressed_is_refused(hub: Hub, tmp_path: Path) -> None:
    """A small compressed answer may expand to any size."""
    hub.instead, hub.encoding = gzip.compress(b" " * 2**20), "gzip"
    assert (
        "the hub sent a compressed answer, although the request forbade it: 'gzip'"
        in pull_refused(hub, tmp_path)
    )


@pytest.mark.parametrize(
    "answer",
    [
        b"[]",
        b'{"siblings": [3]}',
        b"[" * 10**6,
        *release_only(FURTHER, b"7", b'"a"', b"null", b"{}"),
    ],
)
def test_an_answer_of_another_shape_is_reported_in_a_line(
    answer: bytes, hub: Hub, tmp_path: Path
) -> None:
    hub.instead = answer
    errors = pull_refused(hub, tmp_path)
    assert errors.startswith("ouzel: ") and errors.count("\n") == 1


@pytest.mark.release("hubs that answer nonsense")
def test_a_repository_of_too_many_files_is_refused(hub: Hub, tmp_path: Path) -> None:
    names = [{"rfilename": f"{number}.json"} for number in range(100_001)]
    hub.instead = json.dumps({"id": "owner/model", "sha": REVISION, "siblings": names}).encode()
    assert "the hub names 100001 files; a repository may have 100000" in pull_refused(hub, tmp_path)


@pytest.mark.parametrize("name", ["blobs/ETAG.incomplete", "refs/main"])
def test_a_link_in_the_cache_leads_no_file_elsewhere(name: str, hub: Hub, tmp_path: Path) -> None:
    """Another user who may write into the cache has put the link there."""
    outside = tmp_path / "repository" / "precious"
    outside.write_text("data")
    etag = hashlib.sha256((hub.directory / "model.safetensors").read_bytes()).hexdigest()
    link = tmp_path / "hf" / "hub" / "models--owner--model" / name.replace("ETAG", etag)
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    pull("owner/model", env=environment(tmp_path, hub.url))
    assert outside.read_text() == "data"
    assert find_files_outside(tmp_path) == []
