"""Requests choose the adapter of a task, at all endpoints that name the purpose of texts."""

from collections.abc import Iterator
from dataclasses import replace

import httpx
import numpy as np
import pytest

from ouzel.checkpoint.sentence_files import SentenceFiles
from tests.api.server_setup import MODEL
from tests.api.serving import running_server

QUERY, PASSAGE = "retrieval.query", "retrieval.passage"
FILES = SentenceFiles(
    modes=("mean",),
    prompts={QUERY: "ask: ", PASSAGE: "", "plain": "say: "},
    tasks=(QUERY, PASSAGE),
)


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_embedder",
            has_chat_template=False,
            sentences=FILES,
        ) as server,
        server.client() as client,
    ):
        yield client


def make_vector(text: str, task: int) -> list[float]:
    """Returns the vector that the fake runner makes of a text's bytes and its task."""
    return [sum(text.encode()), len(text), text.encode()[0], len(text) + 100 * task]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, make_vector("a", 0)),
        ({"task": QUERY}, make_vector("ask: a", 1)),
        ({"task": PASSAGE}, make_vector("a", 2)),
        ({"prompt_name": QUERY}, make_vector("ask: a", 1)),
        ({"prompt_name": "plain"}, make_vector("say: a", 0)),
        ({"task": PASSAGE, "prompt_name": "plain"}, make_vector("say: a", 2)),
        ({"task": PASSAGE, "prompt_name": QUERY}, make_vector("ask: a", 2)),
    ],
)
def test_a_task_brings_its_prompt_and_its_adapter(
    fields: dict[str, str], expected: list[float], http: httpx.Client
) -> None:
    answer = http.post("/v1/embeddings", json={"input": "a", **fields})
    assert answer.json()["data"][0]["embedding"] == expected


def test_token_ids_have_a_task_without_a_prompt(http: httpx.Client) -> None:
    answer = http.post("/v1/embeddings", json={"input": [[97]], "task": QUERY})
    assert answer.json()["data"][0]["embedding"] == make_vector("a", 1)


def test_other_dialects_choose_tasks_by_their_own_words(http: httpx.Client) -> None:
    tei = http.post("/embed", json={"inputs": "a", "prompt_name": PASSAGE, "normalize": False})
    assert tei.json() == [make_vector("a", 2)]
    for input_type, expected in (
        ("search_query", make_vector("ask: a", 1)),
        ("search_document", make_vector("a", 2)),
    ):
        body = {"texts": ["a"], "input_type": input_type, "model": MODEL}
        cohere = http.post("/v2/embed", json=body)
        assert cohere.json()["embeddings"]["float"] == [expected], cohere.text


def test_an_unknown_task_is_refused(http: httpx.Client) -> None:
    answer = http.post("/v1/embeddings", json={"input": "a", "task": "clustering"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == (
        f"task must be one of the model's tasks ({QUERY}, {PASSAGE}), given 'clustering'"
    )


def test_the_default_prompt_brings_its_adapter_at_all_endpoints() -> None:
    sentences = replace(FILES, default_prompt=FILES.named_prompt(QUERY))
    expected = make_vector("ask: a", 1)
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_embedder",
            has_chat_template=False,
            sentences=sentences,
        ) as server,
        server.client() as http,
    ):
        openai = http.post("/v1/embeddings", json={"input": "a"}).json()
        assert openai["data"][0]["embedding"] == expected
        pooled = http.post("/pooling", json={"input": "a"}).json()
        assert pooled["data"][0]["data"] == pytest.approx(expected)
        assert http.post("/embed", json={"inputs": "a", "normalize": False}).json() == [expected]
        assert http.post("/api/embeddings", json={"prompt": "a"}).json()["embedding"] == expected
        [ollama] = http.post("/api/embed", json={"input": "a"}).json()["embeddings"]
        assert ollama == pytest.approx(np.array(expected) / np.linalg.norm(expected))
