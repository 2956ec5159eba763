"""A server with an EAGLE-3 head gives the answers of a server without one.

The measured costs of this machine decide whether the head drafts at all; drafts of an engine that
must draft are compared in tests/backends.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.serve.running import failure, serving
from tests.serve.test_speculation import answered, counted, num_proposed_ever, text

FLAGS = ("--precision", "f32", "--kv-cache-dtype", "f32", "--no-prompt-lookup")
HEAD = Path(__file__).parents[1] / "backends" / "demo_head"  # trained for the demo model
DRAFTING = {"num_assistant_tokens": 4}  # refused by a server without a source of proposals


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("heads")


@pytest.fixture(scope="module")
def plain(directory: Path) -> Iterator[httpx.Client]:
    with (
        serving(*FLAGS, cache_dir=directory / "cache") as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        yield http


@pytest.fixture(scope="module")
def drafting(directory: Path) -> Iterator[httpx.Client]:
    with (
        serving(*FLAGS, "--draft-model", str(HEAD), cache_dir=directory / "cache") as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        yield http


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.0, "seed": 3, "n": 2}])
def test_a_head_changes_no_answer_and_its_drafts_are_counted(
    plain: httpx.Client, drafting: httpx.Client, sampling: dict[str, object]
) -> None:
    expected, before = answered(plain, **sampling), num_proposed_ever(drafting)
    first, again = (answered(drafting, **sampling, **DRAFTING) for _ in range(2))
    assert [choice["message"] for choice in first["choices"]] == [
        choice["message"] for choice in expected["choices"]
    ]
    assert text(again) == text(expected)
    num_proposed = num_proposed_ever(drafting) - before
    assert sum(counted(first)) + sum(counted(again)) == num_proposed


def test_the_head_is_a_source_of_proposals(plain: httpx.Client, drafting: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1, **DRAFTING}
    statuses = [
        each.post("/v1/chat/completions", json=body).status_code for each in (plain, drafting)
    ]
    assert statuses == [400, 200]


def test_a_head_of_another_model_ends_the_start(directory: Path) -> None:
    head = shutil.copytree(HEAD, directory / "other")
    config = json.loads((head / "config.json").read_text()) | {"target_hidden_size": 512}
    (head / "config.json").write_text(json.dumps(config))
    errors = failure("--draft-model", str(head), cache_dir=directory / "cache")
    assert "target_hidden_size must be 256 as in the model, found 512" in errors
