"""Documents are ordered and pairs scored over HTTP, by models of every kind."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from ouzel.checkpoint.sentence_files import SentenceFiles
from tests.api.golden_server import golden_server
from tests.api.server_setup import MODEL
from tests.api.serving import running_server
from tests.backends.test_openvino_ir_encoders import ir_directory
from tests.backends.test_openvino_sentences import read_golden

DOCUMENTS: list[object] = ["aaa", {"text": "a"}, "aaaaa"]


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    """Yields a client of a model whose score is the number of tokens of query and document."""
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_scorer",
            has_chat_template=False,
            sentences=SentenceFiles(modes=("mean",), activation="identity"),
        ) as server,
        server.client() as client,
    ):
        yield client


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank", "/v3/rerank"])
def test_the_best_come_first(http: httpx.Client, path: str) -> None:
    answer = http.post(path, json={"query": "query", "documents": DOCUMENTS, "model": MODEL}).json()
    assert answer["results"] == [
        {"index": 2, "relevance_score": 10.0},
        {"index": 0, "relevance_score": 8.0},
        {"index": 1, "relevance_score": 6.0},
    ]
    assert answer["usage"] == {"prompt_tokens": 24, "total_tokens": 24}
    assert answer["id"].startswith("rerank-") and answer["model"] == MODEL


def test_so_many_of_the_best_with_their_texts(http: httpx.Client) -> None:
    body = {"query": "query", "documents": DOCUMENTS, "top_n": 1, "return_documents": True}
    [best] = http.post("/v1/rerank", json=body).json()["results"]
    assert best == {"index": 2, "relevance_score": 10.0, "document": {"text": "aaaaa"}}


@pytest.mark.parametrize(
    ("firsts", "seconds", "scores"),
    [("ab", "c", [3]), ("ab", ["c", "de"], [3, 4]), (["a", "bc"], ["d", "efg"], [2, 5])],
)
def test_pairs_have_scores(
    http: httpx.Client, firsts: object, seconds: object, scores: list[float]
) -> None:
    for path in ("/v1/score", "/score", "/v3/score"):
        answer = http.post(path, json={"text_1": firsts, "text_2": seconds}).json()
        assert [entry["score"] for entry in answer["data"]] == scores
        assert [entry["index"] for entry in answer["data"]] == list(range(len(scores)))


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v1/rerank", {"query": "a"}, "documents is required"),
        (
            "/v1/rerank",
            {"query": "a", "documents": []},
            "documents must have a length >= 1, given []",
        ),
        (
            "/v1/rerank",
            {"query": "a", "documents": ["b"], "top_n": 0},
            "top_n must be >= 1, given 0",
        ),
        (
            "/v1/rerank",
            {"query": "a", "documents": ["b"] * 10_001},
            "documents must have 1 to 10000 entries, given 10001",
        ),
        (
            "/v1/rerank",
            {"query": "a", "documents": ["b"], "max_tokens_per_doc": 0},
            "max_tokens_per_doc must be >= 1, given 0",
        ),
        (
            "/v1/rerank",
            {"query": "a", "documents": ["b"], "raw_scores": True, "use_activation": True},
            "raw_scores must be false beside use_activation true, given true",
        ),
        (
            "/v1/rerank",
            {"query": "a", "documents": ["b"], "relevant_spans": {"mode": "x"}},
            'relevant_spans is not supported by this server, given {"mode":"x"}',
        ),
        (
            "/v1/rerank",
            {"query": "a", "documents": ["b"], "instruction": "x"},
            "instruction: this model takes only pairs of texts, without an instruction",
        ),
        (
            "/v1/score",
            {"text_1": ["a", "b"], "text_2": "c"},
            "text_1 must have 1 text, as text_2 has, given 2",
        ),
        (
            "/v1/rerank",
            {"query": "a", "documents": ["b"], "max_chunks_per_doc": 0},
            "max_chunks_per_doc must be >= 1, given 0",
        ),
    ],
)
def test_invalid_fields_are_refused_by_name(
    http: httpx.Client, path: str, body: object, message: str
) -> None:
    response = http.post(path, json=body)
    assert (response.status_code, response.json()["error"]["message"]) == (400, message)


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_documents_are_cut_to_so_many_tokens_and_the_query_is_not(
    http: httpx.Client, path: str
) -> None:
    body = {"query": "q" * 40, "documents": ["b", "a" * 5, "a" * 300], "max_tokens_per_doc": 3}
    scores = {
        each["index"]: each["relevance_score"]
        for each in http.post(path, json=body).json()["results"]
    }
    assert scores == {0: 41.0, 1: 43.0, 2: 43.0}


def test_the_newer_api_cuts_documents_as_coheres_does(http: httpx.Client) -> None:
    body = {"query": "query", "documents": ["a" * 300]}
    assert http.post("/v2/rerank", json=body).json()["results"][0]["relevance_score"] == 256.0
    refused = http.post("/v2/rerank", json=body | {"truncate": False})
    assert (refused.status_code, refused.json().keys()) == (400, {"id", "message"})
    assert "context_length_exceeded" in refused.json()["message"]
    too_long = http.post("/v2/rerank", json=body | {"query": "q" * 256}).json()["message"]
    assert "your query leaves less than a quarter of them to the document" in too_long


def test_an_answer_has_coheres_units(http: httpx.Client) -> None:
    body = {"query": "query", "documents": ["a"] * 101}
    for version in ("1", "2"):
        meta = http.post(f"/v{version}/rerank", json=body).json()["meta"]
        assert meta == {
            "api_version": {"version": version},
            "billed_units": {"input_tokens": 606, "search_units": 2},
            "tokens": {"input_tokens": 606, "output_tokens": 0},
        }


def test_ten_thousand_documents_are_ranked(http: httpx.Client) -> None:
    documents = ["a" * (index % 7) + "b" for index in range(10_000)]
    answer = http.post("/v1/rerank", json={"query": "q", "documents": documents, "top_n": 2}).json()
    assert [result["index"] for result in answer["results"]] == [6, 13]
    assert answer["usage"]["prompt_tokens"] == 10_000 + sum(map(len, documents))


def test_infinitys_clients_get_documents_as_texts(http: httpx.Client) -> None:
    body = {
        "query": "query",
        "documents": ["aaa"],
        "return_documents": True,
        "raw_scores": False,
        "model": "default/not-specified",
    }
    for path in ("/rerank", "/v1/rerank"):
        [result] = http.post(path, json=body).json()["results"]
        assert result == {"index": 0, "relevance_score": 8.0, "document": "aaa"}


def test_a_document_that_is_too_long_is_refused_or_cut_if_the_request_says_so(
    http: httpx.Client,
) -> None:
    body: dict[str, object] = {"query": "query", "documents": ["b", "a" * 300]}
    error = http.post("/v1/rerank", json=body | {"truncate": False}).json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "documents[1]")
    results = http.post("/v1/rerank", json=body | {"truncate_prompt_tokens": 20}).json()["results"]
    assert results[0] == {"index": 1, "relevance_score": 20.0}


@pytest.mark.parametrize("length", [300, 30_000])
def test_a_query_that_is_too_long_by_itself_is_at_fault(http: httpx.Client, length: int) -> None:
    for path, field, body in (
        ("/v1/rerank", "query", {"query": "a" * length, "documents": ["b"]}),
        ("/v1/score", "text_1[1]", {"text_1": ["a", "a" * length], "text_2": ["b", "b"]}),
    ):
        error = http.post(path, json=body).json()["error"]
        assert (error["code"], error["param"]) == ("context_length_exceeded", field)


def test_a_model_that_scores_makes_nothing_else(http: httpx.Client) -> None:
    for path, body in (("/v1/embeddings", {"input": "a"}), ("/v1/completions", {"prompt": "a"})):
        response = http.post(path, json=body)
        assert response.status_code == 400
        assert "scores" in response.json()["error"]["message"]
    assert http.get("/v1/models").json()["data"][0]["capabilities"] == ["rerank"]


@pytest.fixture(scope="module")
def embedder() -> Iterator[httpx.Client]:
    prompts = {"query": "ask: ", "passage": "say: "}
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_embedder",
            sentences=SentenceFiles(modes=("mean",), prompts=prompts),
        ) as server,
        server.client() as http,
    ):
        yield http


def cosine(one: str, other: str) -> float:
    vectors = [
        np.array([sum(text.encode()), len(text), text.encode()[0], len(text)])
        for text in (one, other)
    ]
    value: float = vectors[0] @ vectors[1] / np.prod([np.linalg.norm(vector) for vector in vectors])
    return value


def test_a_model_that_makes_embeddings_scores_by_their_cosine(embedder: httpx.Client) -> None:
    answer = embedder.post("/v1/score", json={"text_1": "ab", "text_2": ["ab", "zz"]}).json()
    assert [entry["score"] for entry in answer["data"]] == pytest.approx([1, cosine("ab", "zz")])
    assert answer["usage"]["prompt_tokens"] == 4  # each text is computed once


def test_a_model_that_makes_embeddings_cuts_documents_too(embedder: httpx.Client) -> None:
    body = {"query": "ab", "documents": ["z" * 300], "max_tokens_per_doc": 7}
    [result] = embedder.post("/v1/rerank", json=body).json()["results"]
    assert result["relevance_score"] == pytest.approx(cosine("ask: ab", "say: zz"))


def test_a_model_that_makes_embeddings_ranks_with_its_prompts_for_queries_and_documents(
    embedder: httpx.Client,
) -> None:
    [result] = embedder.post("/v1/rerank", json={"query": "ab", "documents": ["zz"]}).json()[
        "results"
    ]
    assert result["relevance_score"] == pytest.approx(cosine("ask: ab", "say: zz"))


@pytest.mark.parametrize(
    ("name", "task"), [("qwen3-reranker", "score"), ("qwen3-classifier", "auto")]
)
def test_a_decoder_scores_as_the_card_of_qwen3_reranker_has_it(
    name: str, task: str, tmp_path: Path
) -> None:
    golden = read_golden(name)
    with golden_server(name, "decoder", tmp_path, task=task) as server, server.client() as http:
        answer = http.post(
            "/v1/score", json={"text_1": golden.query, "text_2": golden.texts}
        ).json()
        again = http.post("/v1/score", json={"text_1": golden.query, "text_2": golden.texts}).json()
        other = http.post(
            "/v1/score",
            json={"text_1": golden.query, "text_2": "snow", "instruction": "is it cold"},
        )
        wordy = http.post(
            "/v1/score", json={"text_1": "w " * 2000, "text_2": "snow", "truncate": True}
        ).json()["error"]
        logits = http.post(
            "/v1/score", json={"text_1": golden.query, "text_2": "snow", "use_activation": False}
        ).json()
        cut, same, of_its_end = (
            http.post(
                f"/v{version}/rerank", json={"query": "snow", "documents": [document], **fields}
            ).json()
            for version, document, fields in (
                ("2", "w " * 3000, {"max_tokens_per_doc": 4}),
                ("1", "w w w w ", {}),
                ("1", "w w w w", {"max_tokens_per_doc": 1}),
            )
        )
        stats = server.engine.stats()
    assert cut["results"][0]["relevance_score"] == pytest.approx(
        same["results"][0]["relevance_score"], abs=1e-5
    )
    assert of_its_end["usage"]["prompt_tokens"] < same["usage"]["prompt_tokens"]
    scores = [entry["score"] for entry in answer["data"]]
    assert np.abs(np.array(scores) - golden.arrays["scores"]).max() < 1e-5
    assert [entry["score"] for entry in again["data"]] == pytest.approx(scores, abs=1e-6)
    # the second document shares the prompt's frame and the query with the first
    assert stats is not None and stats.num_prefix_hit_tokens > 0
    assert (wordy["param"], "leaves no token to the document" in wordy["message"]) == (
        "text_1",
        True,
    )
    assert other.json()["data"][0]["score"] != pytest.approx(scores[1], abs=1e-4)
    assert logits["data"][0]["score"] == pytest.approx(
        np.log(scores[1] / (1 - scores[1])), abs=1e-4
    )


def test_an_ir_of_a_decoder_scores_as_its_checkpoint(tmp_path: Path) -> None:
    golden = read_golden("qwen3-classifier")
    directory = ir_directory(tmp_path / "ir", "qwen3-classifier")
    with (
        golden_server(
            "qwen3-classifier", "decoder", tmp_path, directory=directory, weights="auto"
        ) as server,
        server.client() as http,
    ):
        answer = http.post(
            "/v1/score", json={"text_1": golden.query, "text_2": golden.texts}
        ).json()
    scores = np.array([entry["score"] for entry in answer["data"]])
    assert np.abs(scores - golden.arrays["scores"]).max() < 1e-5


def test_clients_may_write_the_prompt_of_qwen3_reranker_around_their_texts(tmp_path: Path) -> None:
    before = (
        "<|im_start|>system\n"
        "Judge whether the Document meets the requirements based on the Query and the Instruct "
        'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    )
    behind = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    documents = ["snow", "rain " * 200]  # the second document is divided into two pieces
    with (
        golden_server(
            "qwen3-reranker", "decoder", tmp_path, task="score", max_model_len=300
        ) as server,
        server.client() as http,
    ):
        plain = {"query": "where is snow", "instruction": "is it cold", "documents": documents}
        framed = {
            "query": f"{before}<Instruct>: is it cold\n<Query>: where is snow\n",
            "documents": [f"<Document>: {document}{behind}" for document in documents],
        }
        expected, answer = (http.post("/v1/rerank", json=body).json() for body in (plain, framed))
        refused = http.post("/v1/rerank", json=framed | {"instruction": "x"}).json()["error"]
        for path in ("/v1/rerank", "/v2/rerank"):
            cut = http.post(path, json=framed | {"truncate": True}).json()
            assert (
                cut["results"] == http.post(path, json=plain | {"truncate": True}).json()["results"]
            )
    assert answer["results"] == expected["results"]
    assert answer["usage"] == expected["usage"]
    assert answer["usage"]["prompt_tokens"] == 3 * 179 + 201
    assert (
        refused["message"]
        == "instruction: the query already contains the model's prompt with an instruction"
    )
