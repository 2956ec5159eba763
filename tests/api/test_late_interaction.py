"""Vectors and weights of tokens, and ranks by late interaction, compared with their authorities.

The golden vectors were computed by MultiVectorEncoder of sentence-transformers, and for bge-m3 by
its two heads from the hidden states of transformers.
"""

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any  # JSON

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.checkpoint.sentence_files import read_sentence_files
from ouzel.errors import ModelLoadError
from ouzel.tokenizer.huggingface import load_tokenizer
from ouzel.vectors import check_tokens
from tests.api.golden_server import golden_server

GOLDEN = Path(__file__).parents[1] / "backends" / "golden_late"
COLBERTS = ["hf-colbert", "multi-vector", "pylate-modernbert", "pylate-residual"]
ALL = ["bge-m3", *COLBERTS]
LARGEST_ERROR = 2e-5


class Golden:
    def __init__(self, name: str) -> None:
        content = json.loads((GOLDEN / name / "golden.json").read_text())
        self.queries: list[str] = content["queries"]
        self.documents: list[str] = content["documents"]
        with np.load(GOLDEN / name / "golden.npz") as arrays:
            self.arrays: dict[str, NDArray[np.float32]] = dict(arrays)


read_golden = cache(Golden)


class Clients:
    """Starts a server for each golden checkpoint when a test needs it."""

    def __init__(self, stack: ExitStack, cache_dir: Path) -> None:
        self._stack = stack
        self._cache_dir = cache_dir
        self._clients: dict[str, httpx.Client] = {}

    def __getitem__(self, name: str) -> httpx.Client:
        if name not in self._clients:
            directory = GOLDEN / name
            server = golden_server(name, "encoder", self._cache_dir, directory=directory)
            self._clients[name] = self._stack.enter_context(
                self._stack.enter_context(server).client()
            )
        return self._clients[name]


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with ExitStack() as stack:
        yield Clients(stack, tmp_path_factory.mktemp("cache"))


def post(client: httpx.Client, path: str, **body: object) -> Any:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def read_error(client: httpx.Client, path: str, **body: object) -> tuple[str | None, str]:
    answer = client.post(path, json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    return error["param"], error["message"]


def read_rows(answer: Any) -> list[NDArray[np.float32]]:
    return [np.array(entry["data"], np.float32) for entry in answer["data"]]


@pytest.mark.parametrize("name", ALL)
def test_the_vectors_of_queries_and_documents_equal_the_authoritys(
    name: str, clients: Clients
) -> None:
    golden = read_golden(name)
    for role, texts in (("query", golden.queries), ("document", golden.documents)):
        body = {"input": texts, "task": "token_embed", "input_type": role, "truncate": True}
        if role == "query":
            del body["truncate"]
        for index, rows in enumerate(read_rows(post(clients[name], "/pooling", **body))):
            expected = golden.arrays[f"{role}{index}"]
            assert rows.shape == expected.shape
            assert np.abs(rows - expected).max() < LARGEST_ERROR


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_documents_are_ranked_by_the_authoritys_scores(
    name: str, path: str, clients: Clients
) -> None:
    golden = read_golden(name)
    for index, query in enumerate(golden.queries):
        # Queries of a fixed length are cut without being asked to.
        body = {"query": query, "documents": golden.documents, "truncate_prompt_tokens": -1}
        results = post(clients[name], path, **body)["results"]
        scores = {each["index"]: each["relevance_score"] for each in results}
        expected = golden.arrays["scores"][index]
        assert [each["index"] for each in results] == np.argsort(-expected).tolist()
        assert max(abs(scores[place] - expected[place]) for place in scores) < 5e-5


def test_pairs_are_scored_as_a_query_and_a_document(clients: Clients) -> None:
    golden = read_golden("hf-colbert")
    pairs = {"text_1": golden.queries, "text_2": golden.documents[:3], "truncate": True}
    data = post(clients["hf-colbert"], "/score", **pairs)["data"]
    expected = np.diag(golden.arrays["scores"])
    assert [each["score"] for each in data] == pytest.approx(expected, abs=5e-5)
    body = {"query": golden.queries[1], "texts": golden.documents[:2], "truncate": True}
    ranks = post(clients["hf-colbert"], "/rerank", **body)
    by_place = {each["index"]: each["score"] for each in ranks}
    assert by_place[1] == pytest.approx(golden.arrays["scores"][1, 1], abs=5e-5)


def test_a_long_document_has_the_score_of_its_best_piece(clients: Clients) -> None:
    client, golden = clients["hf-colbert"], read_golden("hf-colbert")
    document = golden.documents[3]  # 45 words, with room for 21 beside two special tokens, a marker
    words = document.replace("?", " ?").split()
    pieces = [" ".join(words[begin : begin + 21]) for begin in range(0, len(words), 21)]
    query = {"query": golden.queries[0]}
    whole = post(client, "/v1/rerank", documents=[document], **query)["results"]
    parts = post(client, "/v1/rerank", documents=pieces, **query)["results"]
    assert len(parts) == 3
    assert whole[0]["relevance_score"] == pytest.approx(parts[0]["relevance_score"], abs=1e-5)


def test_a_query_is_cut_unless_the_request_refuses_it(clients: Clients) -> None:
    query = {"query": "snow " * 40, "documents": ["snow"]}
    post(clients["hf-colbert"], "/v1/rerank", **query)
    param, message = read_error(clients["hf-colbert"], "/v1/rerank", truncate=False, **query)
    assert param == "query"
    assert "11 tokens" in message
    param, _ = read_error(clients["bge-m3"], "/v1/rerank", query="snow " * 99, documents=["ice"])
    assert param == "query"


def test_the_weights_of_bge_m3_equal_its_sparse_head(clients: Clients) -> None:
    golden, client = read_golden("bge-m3"), clients["bge-m3"]
    body = {"input": golden.documents, "truncate": True}
    for index, rows in enumerate(
        read_rows(post(client, "/pooling", task="token_classify", **body))
    ):
        expected = golden.arrays[f"document{index}.weights"]
        assert rows.shape == expected.shape
        assert np.abs(rows - expected).max() < LARGEST_ERROR
    answer = post(client, "/v1/pooling", task="lexical_weights", **body)
    for index, entry in enumerate(answer["data"]):
        expected = golden.arrays[f"document{index}.lexical"].reshape(-1, 2)
        found = sorted((int(token_id), weight) for token_id, weight in entry["data"].items())
        assert [token_id for token_id, _ in found] == expected[:, 0].tolist()
        assert [weight for _, weight in found] == pytest.approx(expected[:, 1], abs=2e-5)
    raw = read_rows(post(client, "/pooling", task="token_classify", use_activation=False, **body))
    assert min(rows.min() for rows in raw) < 0


def test_bge_m3_makes_vectors_of_whole_texts_by_default(clients: Clients) -> None:
    golden, client = read_golden("bge-m3"), clients["bge-m3"]
    body = {"input": golden.queries[:2]}
    pooled = post(client, "/pooling", **body)
    assert [entry["object"] for entry in pooled["data"]] == ["pooling", "pooling"]
    embedded = post(client, "/v1/embeddings", **body)
    for index, rows in enumerate(read_rows(pooled)):
        expected = golden.arrays[f"query{index}.whole"]
        assert np.abs(rows - expected).max() < LARGEST_ERROR
        assert rows.tolist() == pytest.approx(embedded["data"][index]["embedding"])
    assert pooled["usage"] == embedded["usage"]


def test_base64_has_the_same_numbers(clients: Clients) -> None:
    body = {"input": "the cat sat", "task": "token_embed"}
    [rows] = read_rows(post(clients["bge-m3"], "/pooling", **body))
    for options, kind in (
        ({}, "<f4"),
        ({"embed_dtype": "float16", "endianness": "big"}, ">f2"),
    ):
        answer = post(clients["bge-m3"], "/pooling", encoding_format="base64", **options, **body)
        numbers = np.frombuffer(base64.b64decode(answer["data"][0]["data"]), kind)
        assert np.abs(numbers.reshape(-1, 32) - rows).max() < 1e-3


def test_a_text_without_a_role_has_a_vector_of_each_token(clients: Clients) -> None:
    # As in vLLM: [CLS] the cat , sat [SEP]
    answer = post(clients["hf-colbert"], "/pooling", input=["the cat, sat", "snow"])
    assert [rows.shape for rows in read_rows(answer)] == [(6, 16), (3, 16)]
    assert answer["usage"] == {"prompt_tokens": 9, "total_tokens": 9}
    [unit] = read_rows(post(clients["hf-colbert"], "/pooling", input="snow"))
    assert np.linalg.norm(unit, axis=1) == pytest.approx(1, abs=1e-5)
    [rows] = read_rows(post(clients["hf-colbert"], "/pooling", input="snow", use_activation=False))
    assert np.abs(rows / np.linalg.norm(rows, axis=1, keepdims=True) - unit).max() < 1e-6
    assert np.abs(np.linalg.norm(rows, axis=1) - 1).max() > 0.1


def test_other_encoders_have_vectors_of_tokens_too(tmp_path: Path) -> None:
    body = {"input": ["the cat sat on the mat", "snow"]}
    with golden_server("minilm", "encoder", tmp_path) as server, server.client() as client:
        pooled = post(client, "/pooling", task="token_embed", use_activation=False, **body)
        embedded = post(client, "/v1/embeddings", **body)["data"]
        param, message = read_error(client, "/pooling", task="lexical_weights", **body)
    for rows, whole in zip(read_rows(pooled), embedded, strict=True):
        mean = rows.mean(axis=0)  # the model's pooling
        assert mean / np.linalg.norm(mean) == pytest.approx(whole["embedding"], abs=1e-5)
    assert param == "task"
    assert "(embed, token_embed)" in message


def test_tasks_that_the_model_lacks_are_refused(clients: Clients) -> None:
    param, message = read_error(clients["hf-colbert"], "/pooling", input="snow", task="embed")
    assert param == "task"
    assert "one of the model's tasks (token_embed), given 'embed'" in message
    _, message = read_error(clients["bge-m3"], "/pooling", input="snow", task="classify")
    assert "(embed, token_embed, token_classify, lexical_weights)" in message
    param, message = read_error(clients["hf-colbert"], "/v1/embeddings", input="snow")
    assert param == "model"
    assert "/pooling" in message
    assert "/v1/rerank" in message
    body = {"input": "snow", "task": "lexical_weights", "encoding_format": "base64"}
    assert read_error(clients["bge-m3"], "/pooling", **body)[0] == "encoding_format"
    role = {"input_type": "query"}
    assert read_error(clients["hf-colbert"], "/pooling", input=[5, 6], **role)[0] == "input"


def test_a_model_of_late_interaction_is_listed_as_a_reranker(clients: Clients) -> None:
    listed = {
        name: clients[name].get("/v1/models").json()["data"][0]["capabilities"]
        for name in ("bge-m3", "hf-colbert")
    }
    assert listed == {"bge-m3": ["embedding", "rerank"], "hf-colbert": ["rerank"]}
    page = clients["hf-colbert"].get("/about", headers={"Accept": "text/html"}).text
    assert "/v1/rerank" in page
    assert "Once upon a time" not in page
    assert clients["hf-colbert"].get("/info").json()["model_type"] == {
        "embedding": {"pooling": "none"}
    }


def test_wrong_files_of_late_interaction_are_refused(tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(GOLDEN / "hf-colbert", directory)
    path = directory / "artifact.metadata"
    metadata = json.loads(path.read_text())
    tokenizer = load_tokenizer(directory)
    path.write_text(json.dumps(metadata | {"query_token_id": "[nowhere]"}))
    files = read_sentence_files(directory, "encoder")
    with pytest.raises(ModelLoadError, match=r"marker '\[nowhere\]'"):
        check_tokens(files, tokenizer, tokenizer.vocab_size, "model")
    path.write_text(json.dumps(metadata | {"similarity": "l2"}))
    with pytest.raises(ModelLoadError, match=r"similarity must be one of null, \"cosine\""):
        read_sentence_files(directory, "encoder")
    path.write_text(json.dumps(metadata | {"query_maxlen": "long"}))
    with pytest.raises(ModelLoadError, match=r"query_maxlen must be from 4 .* found \"long\""):
        read_sentence_files(directory, "encoder")


def test_fewer_values_are_kept_if_the_model_was_trained_for_fewer(
    clients: Clients, tmp_path: Path
) -> None:
    body = {"input": ["the cat sat", "snow"]}
    with golden_server("jina-v3", "encoder", tmp_path) as server, server.client() as client:
        for task in ("embed", "token_embed"):
            whole = read_rows(post(client, "/pooling", task=task, use_activation=False, **body))
            short = read_rows(post(client, "/pooling", task=task, dimensions=8, **body))
            for rows, kept in zip(whole, short, strict=True):
                lengths = np.linalg.norm(rows[..., :8], axis=-1, keepdims=True)
                assert np.abs(rows[..., :8] / lengths - kept).max() < 1e-6
    _, message = read_error(clients["bge-m3"], "/pooling", dimensions=8, **body)
    assert "dimensions must be 32, given 8: the model's files do not say" in message
    param, message = read_error(
        clients["bge-m3"], "/pooling", task="token_classify", dimensions=8, **body
    )
    assert param == "dimensions"
    assert "must be left out for the task token_classify" in message
