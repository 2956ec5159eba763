"""OVMS's profile makes embeddings and ranks documents in OVMS's form."""

from collections.abc import Iterator

import httpx
import pytest

from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.config import ServerConfig
from tests.api.server_setup import ServerSetup
from tests.api.serving import running_server

EMBEDDER, RANKER = "embedder", "ranker"
EMBEDDINGS = ("/v3/embeddings", "/v1/embeddings", "/v3/v1/embeddings")
RANKS = ("/v3/rerank", "/v1/rerank")
FILES = SentenceFiles(modes=("mean",), activation="identity")


def build_setup(name: str, factory: str) -> ServerSetup:
    runner = f"tests.engine.vector_runner:{factory}"
    return ServerSetup(
        config=ServerConfig(profile="ovms"),
        names=(name,),
        engine_factory=runner,
        has_chat_template=False,
        sentences=FILES,
    )


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    """Yields a client of two models: one makes embeddings, the other scores by token counts."""
    ranker = build_setup(RANKER, "create_scorer")
    with (
        running_server(
            config=ServerConfig(profile="ovms"),
            names=(EMBEDDER,),
            engine_factory="tests.engine.vector_runner:create_embedder",
            has_chat_template=False,
            sentences=FILES,
            further=(ranker,),
        ) as server,
        server.client() as client,
    ):
        yield client


@pytest.mark.parametrize("path", EMBEDDINGS + RANKS)
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("{", "Cannot parse JSON body"),
        ("[]", "JSON body must be an object"),
        ('{"input": "a", "query": "a", "documents": ["b"]}', "model field is missing in JSON body"),
        ('{"input": "a", "model": null}', "model field is not a string"),
        ('{"model": "embedder", "stream": 1}', "stream field is not a boolean"),
    ],
)
def test_a_malformed_request_is_a_412(
    http: httpx.Client, path: str, body: str, reason: str
) -> None:
    response = http.post(path, content=body)
    assert (response.status_code, response.json()) == (
        412,
        {"error": f"The file is not valid json - {reason}"},
    )


@pytest.mark.parametrize("path", EMBEDDINGS + RANKS)
def test_an_unknown_model_is_a_404(http: httpx.Client, path: str) -> None:
    response = http.post(path, json={"model": "nobody"})
    assert response.status_code == 404
    assert response.json() == {
        "error": "Mediapipe graph definition with requested name is not found"
    }


@pytest.mark.parametrize(
    ("path", "body", "node", "message"),
    [
        ("/v3/embeddings", {"model": EMBEDDER}, "EmbeddingsExecutor", "input is required"),
        (
            "/v3/embeddings",
            {"model": EMBEDDER, "input": "a" * 70},
            "EmbeddingsExecutor",
            "This model's maximum context length is 64 tokens. "
            "However, your input resulted in 70 tokens.",
        ),
        ("/v3/rerank", {"model": RANKER, "query": "a"}, "RerankExecutor", "documents is required"),
        (
            "/v1/rerank",
            {"model": RANKER, "query": "a", "documents": ["b"], "top_n": "x"},
            "RerankExecutor",
            "top_n must be",
        ),
    ],
)
def test_a_wrong_field_is_named_within_ovms_words(
    http: httpx.Client, path: str, body: dict[str, object], node: str, message: str
) -> None:
    response = http.post(path, json=body)
    assert (response.status_code, response.json().keys()) == (400, {"error"})
    assert response.json()["error"].startswith(
        "Mediapipe execution failed. "
        "MP status - INVALID_ARGUMENT: CalculatorGraph::Run() failed: \n"
        f'Calculator::Process() for node "{node}" failed: {message}'
    )


@pytest.mark.parametrize("path", EMBEDDINGS)
def test_embeddings_have_the_keys_of_ovms_documents(http: httpx.Client, path: str) -> None:
    answer = http.post(
        path, json={"model": EMBEDDER, "input": ["ab", "c"], "encoding_format": "float"}
    ).json()
    assert answer.keys() == {"object", "data", "model", "usage"}
    assert answer["object"] == "list" and answer["model"] == EMBEDDER
    assert [(entry["object"], entry["index"]) for entry in answer["data"]] == [
        ("embedding", 0),
        ("embedding", 1),
    ]
    assert answer["usage"] == {"prompt_tokens": 3, "total_tokens": 3}


def test_the_example_of_ovms_documents_is_ranked(http: httpx.Client) -> None:
    body = {
        "model": RANKER,
        "query": "Hello",
        "documents": ["Welcome", "Farewell"],
        "return_documents": True,
        "top_n": 1,
    }
    answer = http.post("/v3/rerank", json=body).json()
    assert answer["results"] == [
        {"index": 1, "relevance_score": 13.0, "document": {"text": "Farewell"}}
    ]


def test_documents_may_have_titles_as_ovms_reads_them(http: httpx.Client) -> None:
    body = {"model": RANKER, "query": "Hello", "documents": [{"title": "a", "text": "Welcome"}]}
    answer = http.post("/v3/rerank", json=body).json()
    assert answer["results"] == [{"index": 0, "relevance_score": 12.0}]
