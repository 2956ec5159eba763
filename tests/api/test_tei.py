"""Paths of text-embeddings-inference work, also for huggingface_hub's client, which uses `/`."""

from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import numpy as np
import pytest
from huggingface_hub import InferenceClient

from ouzel.checkpoint.sentence_files import SentenceFiles
from tests.api.malformed import malformed_requests
from tests.api.requests import Json
from tests.api.server_setup import MODEL, ServerSetup
from tests.api.serving import RunningServer, running_server

TOO_LONG = "a" * 300


@pytest.fixture(scope="module")
def embedder() -> Iterator[RunningServer]:
    files = SentenceFiles(modes=("mean",), prompts={"query": "ask: "}, is_matryoshka=True)
    with running_server(
        engine_factory="tests.engine.vector_runner:create_embedder",
        has_chat_template=False,
        sentences=files,
    ) as server:
        yield server


@pytest.fixture(scope="module")
def http(embedder: RunningServer) -> Iterator[httpx.Client]:
    with embedder.client() as client:
        yield client


@pytest.fixture(scope="module")
def ranker() -> Iterator[httpx.Client]:
    """Yields a client of a model whose score is the number of tokens of query and text."""
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_scorer",
            has_chat_template=False,
            sentences=SentenceFiles(modes=("mean",)),
        ) as server,
        server.client() as client,
    ):
        yield client


def make_vector(text: str) -> list[float]:
    """Returns the vector that the fake runner makes of a text's bytes, which are its tokens."""
    return [sum(text.encode()), len(text), text.encode()[0], len(text)]


def unit(text: str, dimensions: int = 4) -> Any:
    vector = np.array(make_vector(text)[:dimensions], np.float32)
    return pytest.approx(list(vector / np.linalg.norm(vector)), abs=1e-6)


def cosine(one: str, other: str) -> float:
    vectors = [
        np.array(make_vector(text)) / np.linalg.norm(make_vector(text)) for text in (one, other)
    ]
    value: float = vectors[0] @ vectors[1]
    return value


def post_json(http: httpx.Client, path: str, **body: object) -> Any:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("path", ["/embed", "/"])
def test_vectors_have_the_length_one_unless_the_request_says_otherwise(
    http: httpx.Client, path: str
) -> None:
    assert post_json(http, path, inputs="ab") == [unit("ab")]
    assert post_json(http, path, inputs=["ab", "c"]) == [unit("ab"), unit("c")]
    assert post_json(http, path, inputs=[[97, 98], [99]], normalize=False) == [
        make_vector("ab"),
        make_vector("c"),
    ]
    assert post_json(http, path, inputs="ab", dimensions=2) == [unit("ab", 2)]
    assert post_json(http, path, inputs="ab", prompt_name="query") == [unit("ask: ab")]


@pytest.mark.parametrize(
    ("direction", "rest"), [("right", "a" * 64), ("Left", "a" * 30 + "z" * 34)]
)
def test_a_long_text_is_cut_at_the_side_that_the_request_names(
    http: httpx.Client, direction: str, rest: str
) -> None:
    text = "a" * 100 + "z" * 34
    for inputs in (text, [ord(char) for char in text]):
        vectors = post_json(
            http,
            "/embed",
            inputs=inputs,
            truncate=True,
            truncation_direction=direction,
            normalize=False,
        )
        assert vectors == [make_vector(rest)]


@pytest.mark.parametrize("path", ["/similarity", "/"])
def test_sentences_are_compared(http: httpx.Client, path: str) -> None:
    inputs = {"source_sentence": "ab", "sentences": ["zz", "ab"]}
    assert post_json(http, path, inputs=inputs) == pytest.approx([cosine("ab", "zz"), 1])
    prompted = post_json(http, path, inputs=inputs, parameters={"prompt_name": "query"})
    assert prompted == pytest.approx([cosine("ask: ab", "ask: zz"), 1])


@pytest.mark.parametrize("path", ["/rerank", "/"])
def test_texts_are_ordered_by_their_scores(ranker: httpx.Client, path: str) -> None:
    ranks = post_json(ranker, path, query="query", texts=["a", "aaa"], raw_scores=True)
    assert ranks == [{"index": 1, "score": 8.0}, {"index": 0, "score": 6.0}]
    [best, _] = post_json(ranker, path, query="query", texts=["a", "aaa"], return_text=True)
    assert best == {"index": 1, "score": pytest.approx(1 / (1 + np.exp(-8))), "text": "aaa"}
    [cut] = post_json(ranker, path, query="query", texts=[TOO_LONG], truncate=True, raw_scores=True)
    assert cut["score"] == 256.0


def test_a_body_with_documents_is_not_teis(ranker: httpx.Client) -> None:
    results = post_json(ranker, "/rerank", query="query", documents=["a"])["results"]
    assert [result["index"] for result in results] == [0]
    for body, field in (
        ({"query": "query"}, "documents"),
        ({"query": "q", "texts": ["a"], "documents": []}, "texts"),
    ):
        assert ranker.post("/rerank", json=body).json()["error"]["param"] == field


def test_a_list_that_is_null_is_not_given(http: httpx.Client, ranker: httpx.Client) -> None:
    assert post_json(ranker, "/rerank", query="query", texts=["a"], documents=None)[0]["index"] == 0
    assert (
        post_json(ranker, "/rerank", query="query", texts=None, documents=["a"])["results"][0][
            "index"
        ]
        == 0
    )
    assert post_json(http, "/", inputs="ab", texts=None) == [unit("ab")]


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/embed", {}, 422, "inputs is required"),
        ("/", {}, 422, "inputs is required"),
        ("/", {"inputs": {}}, 422, "inputs.source_sentence is required"),
        ("/embed", {"inputs": ["a", 3]}, 422, "inputs[1] must be a text, as inputs[0] is, given 3"),
        ("/embed", {"inputs": "a", "dimensions": 5}, 422, "dimensions must be <= 4, given 5"),
        ("/embed", {"inputs": TOO_LONG}, 413, "your inputs resulted in 300 tokens"),
        (
            "/embed",
            {"inputs": "a", "encoding_format": "base64"},
            422,
            "encoding_format is not supported",
        ),
        ("/embed", {"inputs": "a", "model": "other"}, 404, "the model 'other' does not exist"),
        (
            "/similarity",
            {
                "inputs": {"source_sentence": "a", "sentences": ["b"]},
                "parameters": {"prompt_name": "x"},
            },
            422,
            "parameters.prompt_name must be one of the model's prompts (query), given 'x'",
        ),
        ("/rerank", {"query": "a", "texts": []}, 422, "texts must have a length >= 1, given []"),
    ],
)
def test_errors_are_in_teis_form(
    http: httpx.Client, path: str, body: dict[str, object], status: int, message: str
) -> None:
    response = http.post(path, json=body)
    assert (response.status_code, response.json()["error_type"]) == (status, "Validation")
    assert message in response.json()["error"]


@pytest.mark.parametrize(
    ("path", "good"),
    [
        ("/embed", {"inputs": ["abc"], "normalize": True}),
        ("/similarity", {"inputs": {"source_sentence": "a", "sentences": ["b"]}}),
    ],
)
def test_each_malformed_request_is_answered_with_the_name_of_its_field(
    http: httpx.Client, path: str, good: Json
) -> None:
    requests = list(malformed_requests(path, good))
    assert len(requests) > 20 and http.post(path, json=good).status_code == 200
    for request in requests:
        response = http.post(path, json=request.body)
        said = f"{request.field} ({request.what}): {response.status_code} {response.text[:200]}"
        assert 400 <= response.status_code < 500 and request.field in response.json()["error"], said


def test_a_model_that_ranks_makes_no_vectors(ranker: httpx.Client) -> None:
    for path in ("/embed", "/"):
        response = ranker.post(path, json={"inputs": "a"})
        assert (response.status_code, response.json()["error_type"]) == (424, "Backend")
        assert "scores pairs of texts and makes no embeddings" in response.json()["error"]


def test_the_info_names_the_models_task(http: httpx.Client, ranker: httpx.Client) -> None:
    info = http.get("/info").json()
    assert (info["model_id"], info["model_type"]) == (MODEL, {"embedding": {"pooling": "mean"}})
    assert (info["max_input_length"], info["max_client_batch_size"], info["model_dtype"]) == (
        64,
        2048,
        "float32",
    )
    assert list(ranker.get("/info").json()["model_type"]) == ["reranker"]


def test_of_several_models_the_first_that_can_do_the_work_answers() -> None:
    scorer, embedder = (
        ServerSetup(
            names=(name,),
            engine_factory=f"tests.engine.vector_runner:create_{name}",
            has_chat_template=False,
            sentences=SentenceFiles(modes=("mean",)),
        )
        for name in ("scorer", "embedder")
    )
    with running_server(further=(scorer, embedder)) as server, server.client() as http:
        assert (
            post_json(http, "/embed", inputs="ab")
            == post_json(http, "/", inputs="ab", model=None)
            == [unit("ab")]
        )
        assert post_json(
            http, "/similarity", inputs={"source_sentence": "a", "sentences": ["a"]}
        ) == [pytest.approx(1)]
        for path in ("/rerank", "/"):
            [rank] = post_json(http, path, query="query", texts=["aaa"], raw_scores=True)
            assert rank["score"] == 8  # the ranker made this score: a cosine is not above 1
            [rank] = post_json(http, path, query="a", texts=["a"], model="embedder")
            assert rank["score"] == pytest.approx(1)
        assert http.get("/info").json()["model_id"] == "embedder"
        assert http.post("/embed", json={"inputs": "a", "model": MODEL}).status_code == 424
        body = {"query": "query", "documents": ["aaa"], "raw_scores": True}
        [rank] = post_json(http, "/rerank", **body)["results"]
        assert rank["relevance_score"] == 8


def test_the_info_of_a_model_that_generates_is_an_error(server: RunningServer) -> None:
    with server.client() as http:
        response = http.get("/info")
    assert (response.status_code, response.json()["error_type"]) == (424, "Backend")


def test_hugging_faces_client_finds_all_at_the_root(embedder: RunningServer) -> None:
    client = InferenceClient(base_url=embedder.url)
    vectors = client.feature_extraction(["ab", "c"], normalize=False)
    assert vectors.tolist() == [make_vector("ab"), make_vector("c")]
    assert client.feature_extraction("ab", truncate=True, prompt_name="query").tolist() == [
        unit("ask: ab")
    ]
    similarities = client.sentence_similarity("ab", other_sentences=["zz", "ab"])
    assert similarities == pytest.approx([cosine("ab", "zz"), 1])
    by_path = InferenceClient(model=f"{embedder.url}/embed")
    assert by_path.feature_extraction("c", dimensions=2).tolist() == [unit("c", 2)]
