"""A document that is longer than the model's context is divided into pieces, cut or refused."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any  # JSON

import httpx
import pytest

from ouzel.checkpoint.sentence_files import ModelKind, SentenceFiles
from ouzel.config import ServerConfig
from tests.api.golden_server import golden_server
from tests.api.serving import running_server

QUERY = "query"
ROOM = 64 - len(QUERY)  # the model's context has 64 tokens, which are bytes
LONG = "".join(chr(97 + place * place % 26) for place in range(300))
FACTORY = "tests.engine.vector_runner:create_choosy_scorer"
FILES = SentenceFiles(modes=("mean",), activation="identity")


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with (
        running_server(engine_factory=FACTORY, has_chat_template=False, sentences=FILES) as server,
        server.client() as client,
    ):
        yield client


def split_document(document: str, room: int = ROOM) -> list[str]:
    return [document[begin : begin + room] for begin in range(0, len(document), room)]


def read_scores(http: httpx.Client, query: str, documents: Sequence[str]) -> list[float]:
    """Returns the scores of short documents, each in a pair with the query."""
    answer = http.post("/v1/score", json={"text_1": query, "text_2": list(documents)})
    assert answer.status_code == 200, answer.text
    return [entry["score"] for entry in answer.json()["data"]]


def rank(http: httpx.Client, path: str = "/v1/rerank", **body: object) -> Any:
    answer = http.post(path, json={"query": QUERY, "documents": [LONG], **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def read_score(http: httpx.Client, path: str = "/v1/rerank", **body: object) -> Any:
    [result] = rank(http, path, **body)["results"]
    return result["relevance_score"]


def read_error(http: httpx.Client, **body: object) -> tuple[str | None, str, str]:
    answer = http.post("/v1/rerank", json={"query": QUERY, "documents": [LONG], **body})
    error = answer.json()["error"]
    assert answer.status_code == 400
    return error["code"], error["param"], error["message"]


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank", "/v3/rerank"])
def test_the_best_piece_of_a_long_document_counts(http: httpx.Client, path: str) -> None:
    documents = [LONG, "short", LONG[::-1], LONG[:ROOM]]
    expected = [max(read_scores(http, QUERY, split_document(document))) for document in documents]
    answer = rank(http, path, documents=documents)
    scores = {result["index"]: result["relevance_score"] for result in answer["results"]}
    assert [scores[index] for index in range(4)] == expected
    assert [result["index"] for result in answer["results"]] == sorted(
        range(4), key=lambda index: -expected[index]
    )
    # a server that scored only the first piece would fail here
    assert expected[0] > read_scores(http, QUERY, [LONG[:ROOM]])[0]


def test_all_tokens_and_pieces_are_counted(http: httpx.Client) -> None:
    answer = rank(http, documents=[LONG] * 17 + ["short"])
    num_pieces = len(split_document(LONG))
    assert answer["usage"]["prompt_tokens"] == 17 * (len(LONG) + num_pieces * len(QUERY)) + 10
    assert answer["meta"]["billed_units"]["search_units"] == -(-(17 * num_pieces + 1) // 100) == 2


def test_a_request_says_how_many_pieces_a_document_has(http: httpx.Client) -> None:
    scores = read_scores(http, QUERY, split_document(LONG))
    for num_pieces in (1, 2, 100):
        assert read_score(http, max_chunks_per_doc=num_pieces) == max(scores[:num_pieces])


def test_a_document_is_cut_before_it_is_divided(http: httpx.Client) -> None:
    expected = max(read_scores(http, QUERY, split_document(LONG[:130])))
    assert read_score(http, max_tokens_per_doc=130) == expected
    assert read_score(http, "/v2/rerank", documents=[LONG * 20]) == max(
        read_scores(http, QUERY, split_document((LONG * 20)[:4096]))  # Cohere's default
    )


def test_a_request_says_that_documents_are_cut_or_refused(http: httpx.Client) -> None:
    assert read_score(http, truncate=True) == read_scores(http, QUERY, [LONG[:ROOM]])[0]
    assert read_score(http, truncate_prompt_tokens=20) == read_scores(http, QUERY, [LONG[:15]])[0]
    assert read_error(http, truncate=False)[:2] == ("context_length_exceeded", "documents[0]")


@pytest.mark.parametrize(
    "field", [{"truncate": True}, {"truncate": False}, {"truncate_prompt_tokens": 20}]
)
def test_pieces_beside_a_cut_are_refused(http: httpx.Client, field: dict[str, object]) -> None:
    message = (
        "max_chunks_per_doc must not be given beside truncate or truncate_prompt_tokens, given 2"
    )
    assert read_error(http, max_chunks_per_doc=2, **field)[2] == message


def test_a_query_that_leaves_no_room_to_pieces_is_refused(http: httpx.Client) -> None:
    assert read_score(http, query="q" * 48) == max(
        read_scores(http, "q" * 48, split_document(LONG, 16))
    )
    code, param, message = read_error(http, query="q" * 49)
    assert (code, param) == ("context_length_exceeded", "query")
    assert "your query leaves less than a quarter of them to the document" in message
    # query and document fit into the context together
    assert read_score(http, query="q" * 49, documents=["a" * 15]) > 0


def test_the_server_bounds_the_pieces_of_a_request() -> None:
    with (
        running_server(
            engine_factory=FACTORY, has_chat_template=False, sentences=FILES, max_document_pieces=7
        ) as server,
        server.client() as http,
    ):
        assert read_score(http, documents=[LONG]) == max(
            read_scores(http, QUERY, split_document(LONG))
        )
        code, param, message = read_error(http, documents=[LONG, LONG])
        bounded = rank(http, documents=[LONG, LONG], max_chunks_per_doc=3)
    assert (code, param) == (None, "documents")
    limit = (
        "must come to <= 7 pieces in all, where the long ones are divided (--max-document-chunks)"
    )
    assert message == f"documents {limit}, given 12 or more"
    assert len(bounded["results"]) == 2


def test_the_query_before_each_document_counts_among_the_tokens_of_a_request() -> None:
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_scorer",
            options={"max_model_len": 2**16},
            has_chat_template=False,
            sentences=FILES,
        ) as server,
        server.client() as http,
    ):
        query, documents = "q" * (2**16 - 1), ["d"] * 128
        assert len(rank(http, query=query, documents=documents)["results"]) == 128
        code, param, message = read_error(http, query=query, documents=[*documents, "d"])
    assert (code, param) == (None, "documents")
    limit = "must come to <= 8388608 tokens in all, the query before each piece included"
    assert message == f"documents {limit}, given {129 * 2**16} or more"


def test_the_server_refuses_long_documents() -> None:
    with (
        running_server(
            engine_factory=FACTORY, has_chat_template=False, sentences=FILES, max_document_pieces=0
        ) as server,
        server.client() as http,
    ):
        assert read_error(http)[:2] == ("context_length_exceeded", "documents[0]")
        assert read_score(http, documents=["short"]) == read_scores(http, QUERY, ["short"])[0]
        assert read_score(http, truncate=True) == read_scores(http, QUERY, [LONG[:ROOM]])[0]
        message = read_error(http, max_chunks_per_doc=2)[2]
    assert message == (
        "max_chunks_per_doc is not supported by this server, which divides no document "
        "(--max-document-chunks 0), "
        "given 2"
    )


def test_the_server_cuts_long_documents() -> None:
    with (
        running_server(
            engine_factory=FACTORY, has_chat_template=False, sentences=FILES, cuts_long_texts=True
        ) as server,
        server.client() as http,
    ):
        assert read_score(http) == read_scores(http, QUERY, [LONG[:ROOM]])[0]
        assert read_score(http, max_chunks_per_doc=9) == max(
            read_scores(http, QUERY, split_document(LONG))
        )
        assert read_error(http, truncate=False)[:2] == ("context_length_exceeded", "documents[0]")


def test_with_the_profile_of_ovms_the_query_is_cut_to_half() -> None:
    with (
        running_server(
            config=ServerConfig(profile="ovms"),
            engine_factory=FACTORY,
            has_chat_template=False,
            sentences=FILES,
        ) as server,
        server.client() as http,
    ):
        query = LONG[::-1]
        expected = max(read_scores(http, query[:32], split_document(LONG, 32)))
        assert read_score(http, "/v3/rerank", query=query, model="parrot") == expected


def test_a_model_that_makes_embeddings_ranks_by_its_best_piece() -> None:
    prompts = {"query": "ask: ", "passage": "say: "}
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_embedder",
            sentences=SentenceFiles(modes=("mean",), prompts=prompts),
        ) as server,
        server.client() as http,
    ):
        document = "zz" + "a" * 100 + LONG[:60]
        pieces = split_document(document, 64 - len("say: "))
        expected = [read_scores(http, "ask: " + QUERY, ["say: " + piece])[0] for piece in pieces]
        answer = rank(http, documents=[document, document])
        assert [result["relevance_score"] for result in answer["results"]] == pytest.approx(
            [max(expected)] * 2
        )
        assert answer["usage"]["prompt_tokens"] == len("ask: query") + len("say: ") * len(
            pieces
        ) + len(document)
        assert read_score(http, documents=[document], max_tokens_per_doc=70) == pytest.approx(
            max(
                read_scores(http, "ask: " + QUERY, ["say: " + piece])[0]
                for piece in split_document(document[:65], 59)
            )
        )


@pytest.mark.parametrize(
    ("name", "task", "kind", "max_model_len"),
    [
        ("cross-bert", "auto", "encoder", 16),
        ("cross-xlm-roberta", "auto", "encoder", 16),
        ("qwen3-reranker", "score", "decoder", 500),
    ],
)
def test_pieces_of_a_real_model_have_its_special_tokens(
    name: str, task: str, kind: ModelKind, max_model_len: int, tmp_path: Path
) -> None:
    with (
        golden_server(name, kind, tmp_path, task=task, max_model_len=max_model_len) as server,
        server.client() as http,
    ):
        frame = (
            http.post("/v1/score", json={"text_1": "snow", "text_2": "snow"}).json()["usage"][
                "prompt_tokens"
            ]
            - 1
        )
        room = (max_model_len if kind == "encoder" else max_model_len - 1) - frame
        words = random.Random(0).choices(("snow", "rain", "cold"), k=3 * room - 2)
        pieces = [" ".join(words[begin : begin + room]) for begin in range(0, len(words), room)]
        expected = read_scores(http, "snow", pieces)
        answer = rank(http, query="snow", documents=[" ".join(words)])
    assert len(pieces) == 3 and len(set(expected)) == 3
    assert answer["results"][0]["relevance_score"] == pytest.approx(max(expected), abs=1e-5)
    assert answer["usage"]["prompt_tokens"] == 3 * frame + len(words)
