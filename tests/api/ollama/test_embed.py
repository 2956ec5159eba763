"""Ollama's /api/embed and the older /api/embeddings return vectors in Ollama's forms."""

from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from ouzel.api.ollama.model_name import choose_by_tagged_name, choose_to_embed
from ouzel.api.operations import OPERATIONS
from ouzel.checkpoint.sentence_files import SentenceFiles
from tests.api.serving import running_server


@pytest.fixture(scope="module")
def ollama() -> Iterator[httpx.Client]:
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_embedder",
            sentences=SentenceFiles(modes=("mean",), lowers_case=True),
        ) as server,
        server.client() as client,
    ):
        yield client


def unit(*values: float) -> list[float]:
    return list(np.array(values) / np.linalg.norm(values))


def test_vectors_have_the_length_one(ollama: httpx.Client) -> None:
    answer = ollama.post(
        "/api/embed", json={"model": "parrot", "input": ["aB", "c"], "keep_alive": "5m"}
    ).json()
    assert answer["embeddings"][0] == pytest.approx(unit(195, 2, 97, 2))
    assert answer["embeddings"][1] == pytest.approx(unit(99, 1, 99, 1))
    assert (answer["model"], answer["prompt_eval_count"]) == ("parrot", 3)
    assert answer["total_duration"] >= answer["load_duration"] > 0


def test_a_long_text_is_cut_unless_that_is_forbidden(ollama: httpx.Client) -> None:
    long = {"input": "a" * 300}
    assert ollama.post("/api/embed", json=long).json()["prompt_eval_count"] == 64
    refused = ollama.post("/api/embed", json=long | {"truncate": False})
    assert refused.status_code == 400 and "context_length_exceeded" in refused.json()["error"]
    of_two = ollama.post("/api/embed", json={"input": ["a", "a" * 300], "truncate": False})
    assert "your input[1] resulted in" in of_two.json()["error"]


def test_num_ctx_is_the_limit_of_a_text(ollama: httpx.Client) -> None:
    long = {"input": ["a" * 9, "a"], "options": {"num_ctx": 5, "temperature": 0}}
    assert ollama.post("/api/embed", json=long).json()["prompt_eval_count"] == 6
    refused = ollama.post("/api/embed", json=long | {"truncate": False})
    assert (
        refused.status_code == 400
        and "your input[0] resulted in 9 tokens" in refused.json()["error"]
    )
    roomy = {"input": "a" * 300, "options": {"num_ctx": 32768}}
    assert ollama.post("/api/embed", json=roomy).json()["prompt_eval_count"] == 64
    assert ollama.post("/api/embed", json=roomy | {"truncate": False}).status_code == 400
    older = {"prompt": "ab" * 9, "options": {"num_ctx": 2}}
    assert ollama.post("/api/embeddings", json=older).json() == {"embedding": [195, 2, 97, 2]}
    wrong = ollama.post("/api/embed", json={"input": "a", "options": {"num_ctx": 0}})
    assert wrong.json() == {"error": "options.num_ctx must be >= 1, given 0"}


def test_without_a_text_there_are_no_vectors(ollama: httpx.Client) -> None:
    assert ollama.post("/api/embed", json={"model": "parrot:latest"}).json()["embeddings"] == []
    assert ollama.post("/api/embeddings", json={}).json() == {"embedding": []}


def test_the_older_form_gives_the_vector_as_the_model_makes_it(ollama: httpx.Client) -> None:
    assert ollama.post("/api/embeddings", json={"prompt": "ab"}).json() == {
        "embedding": [195, 2, 97, 2]
    }


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "other", "input": "a"}, 404),
        ({"input": "a", "dimensions": 2}, 400),
        ({"input": 3}, 400),
    ],
)
def test_invalid_requests_are_refused(
    ollama: httpx.Client, body: dict[str, object], status: int
) -> None:
    response = ollama.post("/api/embed", json=body)
    assert response.status_code == status and response.json()["error"]


def test_every_endpoint_of_ollama_finds_a_model_by_its_tagged_name() -> None:
    named = [each for each in OPERATIONS if each.words == "ollama" and each.endpoint is not None]
    assert {each.path for each in named} >= {"/api/embed", "/api/embeddings", "/api/chat"}
    assert {each.choice for each in named} == {choose_by_tagged_name, choose_to_embed}
