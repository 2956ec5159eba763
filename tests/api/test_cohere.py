"""Cohere's /v1/embed and /v2/embed make vectors over HTTP."""

import base64
import struct
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from ouzel.checkpoint.sentence_files import SentenceFiles
from tests.api.malformed import malformed_requests
from tests.api.requests import Json
from tests.api.server_setup import MODEL
from tests.api.serving import running_server
from tests.engine.vector_runner import VECTOR_SIZE

PROMPTS = {"query": "ask: ", "passage": "say: ", "Classification": "sort: "}


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    files = SentenceFiles(modes=("mean",), prompts=PROMPTS, is_matryoshka=True)
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_embedder", sentences=files
        ) as server,
        server.client() as client,
    ):
        yield client


def make_vector(text: str) -> list[float]:
    """Returns the vector that the fake runner makes of a text's bytes, which are its tokens."""
    return [sum(text.encode()), len(text), text.encode()[0], len(text)]


def embeddings(http: httpx.Client, **body: object) -> dict[str, list[object]]:
    response = http.post("/v2/embed", json=body)
    assert response.status_code == 200, response.text
    by_type: dict[str, list[object]] = response.json()["embeddings"]
    return by_type


def test_each_text_has_a_vector_of_each_type(http: httpx.Client) -> None:
    types = ["float", "base64", "binary", "ubinary"]
    body = {"model": MODEL, "texts": ["ab", "c"], "embedding_types": types}
    answer = http.post("/v2/embed", json=body).json()
    assert (answer["response_type"], answer["texts"]) == ("embeddings_by_type", ["ab", "c"])
    assert answer["meta"]["billed_units"] == {"input_tokens": 3}
    assert answer["embeddings"]["float"] == [make_vector("ab"), make_vector("c")]
    decoded = base64.b64decode(answer["embeddings"]["base64"][1])
    assert list(struct.unpack(f"<{VECTOR_SIZE}f", decoded)) == make_vector("c")
    assert answer["embeddings"]["ubinary"] == [[0b11110000]] * 2
    assert answer["embeddings"]["binary"] == [[0b11110000 - 128]] * 2


@pytest.mark.parametrize(
    ("input_type", "prompt"),
    [
        ("search_query", "ask: "),
        ("search_document", "say: "),
        ("classification", "sort: "),
        ("passage", "say: "),
        (None, ""),
    ],
)
def test_the_input_type_chooses_the_models_prompt(
    http: httpx.Client, input_type: str | None, prompt: str
) -> None:
    assert embeddings(http, texts=["ab"], input_type=input_type) == {
        "float": [make_vector(prompt + "ab")]
    }


def test_inputs_are_texts_in_parts(http: httpx.Client) -> None:
    inputs = [{"content": [{"type": "text", "text": text}]} for text in ("ab", "c")]
    assert embeddings(http, inputs=inputs) == {"float": [make_vector("ab"), make_vector("c")]}


def test_fewer_dimensions_are_the_first_ones(http: httpx.Client) -> None:
    assert embeddings(http, texts=["ab"], output_dimension=2) == {"float": [make_vector("ab")[:2]]}


@pytest.mark.parametrize(
    ("fields", "rest"),
    [
        ({}, "a" * 64),
        ({"truncate": "END", "max_tokens": 3}, "aaa"),
        ({"truncate": "START", "max_tokens": 3}, "zzz"),
        ({"truncate": "START"}, "a" * 30 + "z" * 34),
        ({"max_tokens": 1000}, "a" * 64),
    ],
)
def test_long_texts_are_cut_at_the_side_that_the_request_names(
    http: httpx.Client, fields: dict[str, object], rest: str
) -> None:
    assert embeddings(http, texts=["a" * 100 + "z" * 34], **fields) == {
        "float": [make_vector(rest)]
    }


def test_the_older_api_answers_with_plain_lists(http: httpx.Client) -> None:
    answer = http.post("/v1/embed", json={"texts": ["ab"]}).json()
    assert (answer["response_type"], answer["embeddings"]) == (
        "embeddings_floats",
        [make_vector("ab")],
    )
    assert answer["meta"]["api_version"] == {"version": "1"}
    by_type = http.post("/v1/embed", json={"texts": ["ab"], "embedding_types": ["float"]}).json()
    assert (by_type["response_type"], by_type["embeddings"]) == (
        "embeddings_by_type",
        {"float": [make_vector("ab")]},
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "one of texts and inputs is required, given neither"),
        ({"texts": ["a"], "inputs": [{"content": [{"type": "text", "text": "a"}]}]}, "given both"),
        ({"texts": []}, "texts must have a length >= 1, given []"),
        ({"texts": ["a", ""]}, "texts[1] must have at least one token, given none"),
        (
            {"texts": ["a"], "images": ["data:"]},
            "images must not be given: models that make embeddings",
        ),
        (
            {"texts": ["a"], "embedding_types": ["int8"]},
            'embedding_types[0] must be one of "base64", "binary", "float"',
        ),
        (
            {"texts": ["a"], "input_type": "clustering"},
            "input_type must be one of search_query, search_document, query, passage, "
            "Classification, given",
        ),
        ({"texts": ["a"], "output_dimension": 5}, "output_dimension must be <= 4, given 5"),
        (
            {"texts": ["a"], "truncate": "MIDDLE"},
            'truncate must be one of "END", "NONE", "START", given "MIDDLE"',
        ),
        ({"texts": ["a" * 65], "truncate": "NONE"}, "your texts[0] resulted in 65 tokens"),
        (
            {"texts": ["abcd"], "truncate": "NONE", "max_tokens": 3},
            "your texts[0] resulted in 4 tokens",
        ),
    ],
)
def test_invalid_fields_are_refused_by_name_in_coheres_form(
    http: httpx.Client, body: dict[str, object], message: str
) -> None:
    for path in ("/v2/embed", "/v1/embed"):
        response = http.post(path, json=body)
        assert (response.status_code, response.json().keys()) == (400, {"id", "message"})
        assert message in response.json()["message"]


@pytest.mark.parametrize(
    ("path", "good"),
    [
        ("/v2/embed", {"model": MODEL, "texts": ["abc"], "embedding_types": ["float"]}),
        ("/v2/rerank", {"model": MODEL, "query": "abc", "documents": ["d"], "top_n": 1}),
    ],
)
def test_each_malformed_request_is_answered_with_the_name_of_its_field(
    http: httpx.Client, path: str, good: Json
) -> None:
    requests = list(malformed_requests(path, good))
    assert len(requests) > 40 and http.post(path, json=good).status_code == 200
    for request in requests:
        response = http.post(path, json=request.body)
        said = f"{request.field} ({request.what}): {response.status_code} {response.text[:200]}"
        assert 400 <= response.status_code < 500 and request.field in response.json()["message"], (
            said
        )


def test_a_model_without_prompts_reads_all_types_alike() -> None:
    files = SentenceFiles(modes=("mean",), prompts={"query": "", "document": ""})
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_embedder", sentences=files
        ) as server,
        server.client() as http,
    ):
        for input_type in ("search_query", "search_document", "classification", "clustering"):
            assert embeddings(http, texts=["ab"], input_type=input_type) == {
                "float": [make_vector("ab")]
            }
        assert (
            http.post("/v2/embed", json={"texts": ["ab"], "input_type": "image"}).status_code == 400
        )


def test_a_prompt_of_the_types_own_name_counts_first() -> None:
    files = SentenceFiles(
        modes=("mean",), prompts={"query": "", "document": "", "search_query": "what: "}
    )
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_embedder", sentences=files
        ) as server,
        server.client() as http,
    ):
        assert embeddings(http, texts=["ab"], input_type="search_query") == {
            "float": [make_vector("what: ab")]
        }
        assert embeddings(http, texts=["ab"], input_type="document") == {
            "float": [make_vector("ab")]
        }


def test_the_vectors_equal_the_embeddings_endpoints(http: httpx.Client) -> None:
    body = {"input": "ab", "prompt_name": "query", "dimensions": 3}
    [entry] = http.post("/v1/embeddings", json=body).json()["data"]
    [vector] = embeddings(http, texts=["ab"], input_type="search_query", output_dimension=3)[
        "float"
    ]
    assert np.array_equal(entry["embedding"], vector)  # type: ignore[arg-type]
