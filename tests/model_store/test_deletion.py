"""One GGUF model of a repository is deleted without the others; files in use stay."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ouzel.model_store.deletion import InUse, NothingStored, delete_model
from ouzel.model_store.hub_cache import repositories
from ouzel.model_store.inventory import Inventory

REVISIONS = ("1" * 40, "2" * 40)


class Cache:
    """A hub's cache with the repository owner/model."""

    def __init__(self, directory: Path) -> None:
        self.root = directory
        self.repository = directory / "models--owner--model"
        (self.repository / "blobs").mkdir(parents=True)

    def add(self, name: str, blob: str, revision: str = REVISIONS[0]) -> Path:
        content = self.repository / "blobs" / blob
        content.write_bytes(b"x" * 1000)
        path = self.repository / "snapshots" / revision / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(os.path.relpath(content, path.parent))
        return path

    def delete(self, name: str, in_use: Sequence[Path] = ()) -> int:
        inventory = Inventory(tuple(repositories(self.root)), kept=(), demos={})
        return delete_model(inventory, name, in_use)

    def list_blobs(self) -> list[str]:
        return sorted(path.name for path in self.repository.glob("blobs/*"))


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def test_one_gguf_model_goes_and_the_others_stay(cache: Cache) -> None:
    small, large = cache.add("m-Q4_K_M.gguf", "a"), cache.add("m-Q8_0.gguf", "b")
    num_bytes = cache.delete("owner/model:q4_k_m")

    assert num_bytes >= 1000
    assert (small.is_symlink(), large.is_file()) == (False, True)
    assert cache.list_blobs() == ["b"]


def test_all_parts_of_a_split_model_go(cache: Cache) -> None:
    cache.add("m-Q4_0-00001-of-00002.gguf", "a")
    cache.add("m-Q4_0-00002-of-00002.gguf", "b")
    cache.add("m-Q8_0.gguf", "c")
    cache.delete("owner/model:Q4_0")

    assert cache.list_blobs() == ["c"]


def test_a_model_goes_from_all_revisions(cache: Cache) -> None:
    paths = [cache.add("m-Q4_0.gguf", f"{index}", each) for index, each in enumerate(REVISIONS)]
    cache.add("m-Q8_0.gguf", "other")
    cache.delete("owner/model:Q4_0")

    assert [path.is_symlink() for path in paths] == [False, False]
    assert cache.list_blobs() == ["other"]


def test_a_blob_with_another_name_stays(cache: Cache) -> None:
    cache.add("m-Q4_0.gguf", "same")
    other = cache.add("copy-Q8_0.gguf", "same")
    cache.delete("owner/model:m-Q4_0.gguf")

    assert other.is_file()
    assert cache.list_blobs() == ["same"]


def test_the_last_model_goes_with_its_repository(cache: Cache) -> None:
    cache.add("m-Q4_0.gguf", "a")
    cache.add("config.json", "b")
    cache.delete("owner/model:Q4_0")

    assert not cache.repository.exists()


def test_a_download_that_was_not_finished_is_deleted(cache: Cache) -> None:
    (cache.repository / "blobs" / "a.incomplete").write_bytes(b"x")
    cache.delete("owner/model:Q4_0")

    assert not cache.repository.exists()


@pytest.mark.parametrize(
    "name", ["owner/model:Q5_0", "owner/other", "llama3", "/etc", "../owner/model", "~/x", "a/b/c"]
)
def test_a_name_without_files_deletes_nothing(cache: Cache, name: str) -> None:
    cache.add("m-Q4_0.gguf", "a")
    with pytest.raises(NothingStored, match="is not on this disk"):
        cache.delete(name)

    assert cache.list_blobs() == ["a"]


def test_a_loaded_model_stays(cache: Cache) -> None:
    weights = cache.add("model.safetensors", "a")
    with pytest.raises(InUse, match="owner/model is loaded; unload it first"):
        cache.delete("owner/model", [weights.parent])

    assert cache.list_blobs() == ["a"]


def test_a_quantisation_names_the_file_that_a_download_of_it_brings(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.add("m-UD-Q4_K_XL.gguf", "a")
    cache.add("m-Q8_0.gguf", "b")
    with pytest.raises(NothingStored):
        cache.delete("owner/model:K_XL.x")
    cache.delete("owner/model:Q4_K_XL")
    assert cache.list_blobs() == ["b"]
