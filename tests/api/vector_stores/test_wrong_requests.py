"""Wrong requests about vector stores are refused, with the name of the field."""

import json
from pathlib import Path

import httpx
import openai
import pytest

from tests.api.requests import read_error
from tests.api.vector_stores.setup import TEXTS, connect, read_problem, search_server, upload


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": "a", "rewrite_query": True}, "rewrite_query"),
        ({"query": ""}, "query"),
        ({"query": []}, "query"),
        ({"query": "a" * 4097}, "query"),
        ({}, "query"),
        ({"query": "a", "max_num_results": 51}, "max_num_results"),
        ({"query": "a", "max_num_results": 0}, "max_num_results"),
        ({"query": "a", "ranking_options": {"ranker": "x"}}, "ranking_options.ranker"),
        (
            {"query": "a", "ranking_options": {"score_threshold": 2}},
            "ranking_options.score_threshold",
        ),
        ({"query": "a", "filters": {"type": "eq", "key": "a"}}, "filters"),
        ({"query": "a", "filters": {"type": "gt", "key": "a", "value": True}}, "filters.value"),
        ({"query": "a", "filters": {"type": "in", "key": "a", "value": 1}}, "filters.value"),
        (
            {
                "query": "a",
                "filters": {"type": "or", "filters": [{"type": "like", "key": "a", "value": 1}]},
            },
            "filters.filters[0]",
        ),
        (
            {
                "query": "a",
                "ranking_options": {"hybrid_search": {"embedding_weight": 0, "text_weight": 0}},
            },
            "ranking_options.hybrid_search",
        ),
    ],
)
def test_a_wrong_search_is_refused(
    http: httpx.Client, notes: str, body: dict[str, object], field: str
) -> None:
    answer = http.post(f"/v1/vector_stores/{notes}/search", json=body)
    assert (answer.status_code, read_error(answer)["param"]) == (400, field)


OVERLAP = {"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 60}}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("", {"file_ids": ["file-none"]}, "file_ids"),
        ("", {"expires_after": {"anchor": "created_at", "days": 1}}, "expires_after.anchor"),
        ("", {"expires_after": {"anchor": "last_active_at", "days": 0}}, "expires_after.days"),
        ("", {"metadata": {"a": 1}}, "metadata.a"),
        ("", {"chunking_strategy": {"type": "magic"}}, "chunking_strategy.type"),
        ("/{id}/files", {}, "file_id"),
        ("/{id}/files", {"file_id": "file-none"}, "file_id"),
        ("/{id}/files", {"file_id": "x", "attributes": {"a": [1]}}, "attributes.a"),
        ("/{id}/file_batches", {}, "file_ids"),
        ("/{id}/file_batches", {"file_ids": ["a"], "files": []}, "file_ids"),
        ("/{id}/file_batches", {"files": [{"file_id": "a"}] * 2}, "files"),
    ],
)
def test_wrong_fields_are_refused(
    http: httpx.Client, notes: str, path: str, body: dict[str, object], field: str
) -> None:
    answer = http.post(f"/v1/vector_stores{path.format(id=notes)}", json=body)
    assert answer.status_code in (400, 404)
    assert read_error(answer)["param"] == field


def test_an_overlap_is_at_most_half_a_chunk(client: openai.OpenAI, notes: str) -> None:
    file_id = upload(client, "a.txt", "a")
    with pytest.raises(openai.BadRequestError, match="must be <= 50, half of") as caught:
        client.vector_stores.files.create(
            notes, file_id=file_id, extra_body={"chunking_strategy": OVERLAP}
        )
    field = "chunking_strategy.static.chunk_overlap_tokens"
    assert read_problem(caught.value) == (400, field)


@pytest.mark.parametrize(
    "query",
    [
        "İSTANBUL",
        '" OR store : store1 --',
        "NEAR(a b)",
        "* : ^ -",
        "a\0b",
        "\ud800",
        "हिन्दी",
        "²",
        "🦦",
    ],
)
def test_any_text_can_be_searched(http: httpx.Client, notes: str, query: str) -> None:
    body = {"query": query, "max_num_results": 50}
    answer = http.post(f"/v1/vector_stores/{notes}/search", content=json.dumps(body))
    if query == "\ud800":  # no text of Unicode
        assert answer.status_code == 400
    else:
        assert answer.status_code == 200, answer.text
        assert {hit["filename"] for hit in answer.json()["data"]} <= TEXTS.keys()


def test_without_a_model_for_vectors_a_store_is_refused(tmp_path: Path) -> None:
    with (
        search_server(tmp_path / "s.sqlite3", has_embedder=False) as server,
        connect(server) as client,
        pytest.raises(openai.BadRequestError) as caught,
    ):
        client.vector_stores.create(name="notes")
    assert "a vector store needs a model for embeddings" in str(caught.value)
