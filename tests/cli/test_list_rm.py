"""Runs `ouzel list` and `ouzel rm` on caches as downloads and starts leave them."""

import io
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

import pytest
from huggingface_hub import constants

from ouzel.backends.openvino.loader import load_checkpoint
from ouzel.backends.openvino.weights.cache import CachedWeights
from ouzel.checkpoint.hf_config import read_hf_config
from ouzel.cli.app import main
from ouzel.config.weights import read_weights
from ouzel.gguf.model_directory import model_directory
from ouzel.model_store.hub_cache import cache_directory
from ouzel.model_store.verdict import judge
from tests.backends import GOLDEN
from tests.model_store.hub import REVISION
from tests.model_store.test_gguf_models import small_model


@dataclass(frozen=True)
class Caches:
    hub: Path
    own: Path

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Runs a command in this process; returns its status and both its outputs.

        The command cannot ask a user. A process of its own would import OpenVINO again.
        """
        with pytest.MonkeyPatch.context() as patch, open(os.devnull) as nobody:
            patch.setattr(constants, "HF_HUB_CACHE", str(self.hub))
            patch.setenv("OUZEL_CACHE_DIR", str(self.own))
            assert cache_directory() == self.hub  # not the user's own cache
            patch.setattr(sys, "stdin", nobody)
            with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()) as errors:
                status = main(arguments)
        return status, output.getvalue(), errors.getvalue()

    def run_at_terminal(self, *arguments: str, answer: str) -> tuple[int, str]:
        """Runs a command at a terminal with a typed answer; returns status and output."""
        leader, follower = pty.openpty()
        os.write(leader, answer.encode())
        done = subprocess.run(
            [sys.executable, "-m", "ouzel", *arguments],
            env=os.environ | {"HF_HUB_CACHE": str(self.hub), "OUZEL_CACHE_DIR": str(self.own)},
            stdin=follower,
            capture_output=True,
            text=True,
            check=False,
        )
        os.close(leader)
        os.close(follower)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout

    def read_list(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.run("list", "--json")[1])
        return document

    def add(self, repo_id: str, source: Path) -> Path:
        """Adds a model to the hub's cache and returns the snapshot's directory.

        Its files are links to blobs, as the hub's library lays them out.
        """
        folder = self.hub / f"models--{repo_id.replace('/', '--')}"
        snapshot = folder / "snapshots" / REVISION
        snapshot.mkdir(parents=True)
        (folder / "blobs").mkdir()
        (folder / "refs").mkdir()
        (folder / "refs" / "main").write_text(REVISION)
        for number, file in enumerate(sorted(path for path in source.iterdir() if path.is_file())):
            shutil.copy(file, folder / "blobs" / f"{number:064}")
            (snapshot / file.name).symlink_to(f"../../blobs/{number:064}")
        return snapshot

    def prepare(self, directory: Path, weights: str = "int4") -> Path:
        """Prepares weights as a start of the model does; returns their cache entry."""
        model = load_checkpoint(
            directory, read_hf_config(directory), read_weights(weights), str(self.own)
        )
        assert model.cache_entry is not None
        return model.cache_entry


@pytest.fixture
def caches(tmp_path: Path) -> Caches:
    return Caches(tmp_path / "hub", tmp_path / "own")


@pytest.fixture
def served(caches: Caches) -> Iterator[Path]:
    """Adds a model to the hub's cache, with prepared weights that no server holds."""
    snapshot = caches.add("owner/model", GOLDEN / "qwen3")
    caches.prepare(snapshot)
    yield snapshot


def test_without_a_hub_cache_the_demos_are_listed(caches: Caches) -> None:
    status, output, _ = caches.run("list")
    assert status == 0
    assert f"The Hugging Face cache, {caches.hub}, does not exist" in output
    assert "ouzel-demo-vision" in output
    assert f"Nothing is stored in {caches.own} yet" in output


def test_a_model_is_listed_with_its_prepared_weights(caches: Caches, served: Path) -> None:
    document = caches.read_list()
    model, kept = document["models"][0], document["kept"][0]
    assert (model["name"], model["revision"], model["model_type"]) == (
        "owner/model",
        REVISION,
        "qwen3",
    )
    assert model["is_served"]
    assert model["num_parameters"] > 1000
    assert model["size_bytes"] == sum(path.stat().st_size for path in served.iterdir())
    assert (kept["model"], kept["width"], kept["stale"]) == ("owner/model", "int4", "")
    assert kept["id"] in caches.run("list")[1]


@pytest.mark.parametrize("name", ["minilm", "cross-bert", "qwen3-embedding", "qwen3-classifier"])
def test_a_model_that_makes_vectors_would_be_served(name: str) -> None:
    verdict = judge(GOLDEN.parent / "golden_sentences" / name)
    assert verdict.is_served, verdict.reason
    assert verdict.num_parameters > 1000


def test_a_model_that_cannot_be_served_is_listed_with_the_reason(
    caches: Caches, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    caches.add("owner/t5", tmp_path)
    output = caches.run("list")[1]
    assert "no: model_type t5 is not supported" in output
    assert "supported: " not in output


def test_gguf_models_are_listed_one_by_one(caches: Caches, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "Model-Q4_0.gguf").write_bytes(small_model(["a", "b"]))
    (source / "Model-Q8_0.gguf").write_bytes(b"GGUF")
    caches.add("owner/model", source)
    models = caches.read_list()["models"][:2]
    assert [model["name"] for model in models] == ["owner/model:Q4_0", "owner/model:Q8_0"]
    assert [model["is_served"] for model in models] == [True, False]
    assert "truncated" in models[1]["reason"]


def test_missing_and_hostile_files_of_a_repository_are_listed_as_such(
    caches: Caches, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "be\\u001b]0;owned\\u0007rt"}')
    caches.add("owner/bert", tmp_path)
    split = caches.add("owner/split", tmp_path)
    (split / "Model-Q4_0-00001-of-00002.gguf").write_bytes(b"GGUF")
    (split / "Model-Q4_0-00002-of-00002.gguf").symlink_to("gone")
    status, output, _ = caches.run("list")
    assert status == 0
    assert "owner/split:Q4_0" in output
    assert "be␛]0;owned␇rt" in output


def test_a_download_that_was_cut_off_is_listed(caches: Caches) -> None:
    blobs = caches.hub / "models--owner--model" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "abc.incomplete").write_bytes(bytes(5000))
    assert "5 kB of unfinished downloads" in caches.run("list")[1]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (shutil.rmtree, "its model is gone"),
        (
            lambda directory: next(directory.glob("*.safetensors")).unlink(),
            "files of its model are gone",
        ),
        (lambda directory: os.utime(directory / "config.json", (0, 0)), "its model has changed"),
    ],
    ids=["directory removed", "file removed", "file changed"],
)
def test_weights_that_no_start_will_use_are_stale(
    change: Any,  # a function of the directory
    reason: str,
    caches: Caches,
    tmp_path: Path,
) -> None:
    directory = Path(shutil.copytree(GOLDEN / "qwen3", tmp_path / "model"))
    entry = caches.prepare(directory)
    change(directory)
    assert caches.read_list()["kept"][0]["stale"] == reason
    assert f"stale: {reason}" in caches.run("list")[1]
    assert caches.run("rm", "--stale", "--yes")[0] == 0
    assert not entry.exists()


def test_weights_of_another_version_are_stale(caches: Caches, served: Path) -> None:
    [made_of] = caches.own.glob("*/made_of.json")
    facts = json.loads(made_of.read_text())
    made_of.write_text(json.dumps(facts | {"openvino": "2020.1"}))
    entry = made_of.parent
    entry.rename(entry.with_name(entry.name[:-16] + "0" * 16))
    assert "openvino 2020.1" in caches.read_list()["kept"][0]["stale"]


def test_nothing_is_stale_that_a_start_would_use(caches: Caches, served: Path) -> None:
    assert caches.run("rm", "--stale", "--yes")[:2] == (0, "There is nothing to remove.\n")
    assert len(caches.read_list()["kept"]) == 1


def test_a_model_is_removed_with_its_prepared_weights(
    caches: Caches, served: Path, tmp_path: Path
) -> None:
    other = caches.prepare(Path(shutil.copytree(GOLDEN / "llama", tmp_path / "other")))
    status, output, _ = caches.run("rm", "owner/model", "--yes")
    assert status == 0
    assert "were freed" in output
    assert list(caches.hub.iterdir()) == []
    assert list(caches.own.iterdir()) == [other]


def test_the_weights_alone_are_removed(caches: Caches, served: Path) -> None:
    assert caches.run("rm", "owner/model", "--weights-only", "--yes")[0] == 0
    assert (served / "config.json").exists()
    assert list(caches.own.iterdir()) == []


def test_an_entry_is_removed_by_its_id(caches: Caches, served: Path) -> None:
    other = caches.prepare(served, "int8")
    [one] = [kept["id"] for kept in caches.read_list()["kept"] if kept["width"] == "int4"]
    assert caches.run("rm", one, "--yes")[0] == 0
    assert list(caches.own.iterdir()) == [other]


@pytest.mark.parametrize(("answer", "is_removed"), [("y\n", True), ("\n", False), ("no\n", False)])
def test_a_user_at_a_terminal_is_asked(
    answer: str, is_removed: bool, caches: Caches, served: Path
) -> None:
    status, output = caches.run_at_terminal("rm", "owner/model", answer=answer)
    assert "Remove it? [y/N] " in output
    assert (status == 0) is is_removed
    assert served.exists() is not is_removed


def test_without_a_terminal_a_flag_must_agree(caches: Caches, served: Path) -> None:
    status, _, errors = caches.run("rm", "owner/model")
    assert (status, errors) == (2, "ouzel: --yes: is required without a terminal\n")
    assert served.exists()


def test_weights_that_a_server_holds_are_left_alone(caches: Caches, served: Path) -> None:
    [entry] = caches.own.iterdir()
    weights = CachedWeights(entry)
    assert caches.read_list()["kept"][0]["is_in_use"]
    status, _, errors = caches.run("rm", "owner/model", "--yes")
    assert status == 1
    assert "is in use by a running server" in errors
    assert entry.exists()
    assert served.exists()
    weights.mapping.close()
    assert caches.run("rm", "owner/model", "--yes")[0] == 0


def test_links_are_not_followed(caches: Caches, served: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("data")
    (served / "linked").symlink_to(outside)
    [entry] = caches.own.iterdir()
    (entry / "linked").symlink_to(outside)
    (caches.hub / "models--owner--link").symlink_to(outside)
    (caches.own / ("link-int4-" + "0" * 16 + "-" + "0" * 16)).symlink_to(outside)
    assert len(caches.read_list()["kept"]) == 1
    assert caches.run("rm", "owner/link", "--yes")[0] == 1
    assert caches.run("rm", "owner/model", "--yes")[0] == 0
    assert (outside / "precious").read_text() == "data"


@pytest.mark.parametrize(
    "link", [".locks", ".locks/models--owner--model", "models--owner--model/blobs"]
)
def test_links_in_the_place_of_the_cache_s_own_directories_are_not_followed(
    link: str, caches: Caches, tmp_path: Path
) -> None:
    precious = tmp_path / "outside" / "models--owner--model" / "precious"
    precious.parent.mkdir(parents=True)
    precious.write_text("data")
    caches.add("owner/model", GOLDEN / "llama")
    place = caches.hub / link
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(precious.parent.parent if link == ".locks" else precious.parent)

    assert caches.run("rm", "owner/model", "--yes")[0] == 0
    assert precious.read_text() == "data"
    assert not (caches.hub / "models--owner--model").exists()


@pytest.mark.parametrize(
    "name",
    ["..", "../own", "owner/../model", "owner/none", "/", "models--owner--model", "~nobodys/x", ""],
)
def test_a_name_of_nothing_removes_nothing(name: str, caches: Caches, served: Path) -> None:
    status, _, errors = caches.run("rm", name, "--yes")
    assert status == (1 if name else 2)
    assert errors.count("\n") == 1
    assert (served / "config.json").exists()
    assert len(list(caches.own.iterdir())) == 1


def test_a_quantisation_is_not_removed_by_itself(caches: Caches, served: Path) -> None:
    _, _, errors = caches.run("rm", "owner/model:Q4_0", "--yes")
    assert "only a whole repository can be removed; give owner/model" in errors


def test_of_a_demo_or_a_directory_only_prepared_weights_are_removed(
    caches: Caches, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(GOLDEN / "qwen3", tmp_path / "model"))
    caches.prepare(directory)
    assert caches.run("rm", str(directory), "--yes")[0] == 0
    assert (directory / "config.json").exists()
    assert list(caches.own.iterdir()) == []
    _, _, errors = caches.run("rm", str(directory), "--yes")
    assert "files outside the caches are not removed" in errors
    _, _, errors = caches.run("rm", "ouzel-demo", "--yes")
    assert "ouzel-demo: Ouzel has stored no files of this model" in errors


def test_files_that_could_not_be_removed_are_named(caches: Caches, served: Path) -> None:
    blobs = served.parent.parent / "blobs"
    blobs.chmod(0o500)
    if os.access(blobs, os.W_OK):
        pytest.skip("this user may remove everything")
    status, _, errors = caches.run("rm", "owner/model", "--yes")
    blobs.chmod(0o700)
    assert status == 1
    assert f"{blobs}" in errors
    assert "Permission denied" in errors


def test_weights_made_from_gguf_are_stale_when_the_file_is_gone(
    caches: Caches, tmp_path: Path
) -> None:
    gguf = tmp_path / "Small-Q8_0.gguf"
    gguf.write_bytes(small_model(["a", "b"]))
    directory = model_directory(gguf, caches.own)
    [kept] = caches.read_list()["kept"]
    assert (kept["kind"], kept["model"], kept["stale"]) == ("gguf", str(gguf), "")
    gguf.unlink()
    assert caches.read_list()["kept"][0]["stale"] == "its file is gone"
    assert caches.run("rm", "--stale", "--yes")[0] == 0
    assert not directory.exists()
