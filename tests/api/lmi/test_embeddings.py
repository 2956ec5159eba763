"""Models that embed or rank texts take the bodies of LMI's handlers at /invocations."""

import logging
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import numpy as np
import pytest

from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.config import ServerConfig
from tests.api.lmi.answers import PREFIX, read_refusal
from tests.api.requests import Json
from tests.api.serving import RunningServer, running_server

TOO_LONG = "a" * 300
PATHS = [
    "/invocations",
    "/predictions/org_parrot",
    "/models/org/parrot/invoke",
    "/endpoints/parrot/invocations",
]


def serve_vectors(name: str, files: SentenceFiles, config: ServerConfig | None = None) -> Any:
    return running_server(
        engine_factory=f"tests.engine.vector_runner:{name}",
        has_chat_template=False,
        sentences=files,
        config=config or ServerConfig(profile="lmi"),
    )


@pytest.fixture(scope="module")
def embedder() -> Iterator[RunningServer]:
    with serve_vectors("create_embedder", SentenceFiles(modes=("mean",))) as server:
        yield server


@pytest.fixture(scope="module")
def http(embedder: RunningServer) -> Iterator[httpx.Client]:
    with embedder.client() as client:
        yield client


@pytest.fixture(scope="module")
def ranker() -> Iterator[httpx.Client]:
    """Yields a client of a model that scores two texts by the sigmoid of their number of tokens."""
    with (
        serve_vectors("create_scorer", SentenceFiles(modes=("mean",))) as server,
        server.client() as client,
    ):
        yield client


def make_vector(text: str) -> list[float]:
    """Returns the vector that the fake runner makes of a text's bytes, which are its tokens."""
    return [sum(text.encode()), len(text), text.encode()[0], len(text)]


def make_unit_vector(text: str) -> Any:
    vector = np.array(make_vector(text), np.float32)
    return pytest.approx(list(vector / np.linalg.norm(vector)), abs=1e-6)


def expect_score(num_tokens: int) -> Any:
    return pytest.approx(1 / (1 + np.exp(-num_tokens)))


def post_json(http: httpx.Client, body: object, path: str = "/invocations") -> Any:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("path", PATHS)
def test_a_text_is_a_vector_and_a_list_is_a_list_of_vectors(http: httpx.Client, path: str) -> None:
    assert post_json(http, {"inputs": "ab"}, path) == make_vector("ab")
    assert post_json(http, {"inputs": ["ab"]}, path) == [make_vector("ab")]
    assert post_json(http, {"inputs": ["ab", "c"]}, path) == [make_vector("ab"), make_vector("c")]
    assert post_json(http, ["ab", "c"], path) == [make_vector("ab"), make_vector("c")]


def test_parameters_and_neutral_fields(http: httpx.Client) -> None:
    assert post_json(http, {"inputs": "ab", "parameters": {"normalize": True}}) == make_unit_vector(
        "ab"
    )
    assert post_json(http, {"inputs": ["ab"], "parameters": {"normalize": True}}) == [
        make_unit_vector("ab")
    ]
    assert post_json(http, {"inputs": TOO_LONG, "parameters": {"truncate": True}}) == make_vector(
        "a" * 64
    )
    neutral: Json = {"parameters": None, "adapters": "", "stream": False, "model": "any"}
    assert post_json(http, {"inputs": "ab", **neutral}) == make_vector("ab")


def test_unknown_parameters_are_ignored_in_one_line(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    assert post_json(http, {"inputs": "ab", "parameters": {"zeal": 1}}) == make_vector("ab")
    lines = [record.getMessage() for record in caplog.records if record.name == "ouzel.wire.decode"]
    assert lines == ["ignored fields: 'parameters.zeal'"]


def test_plain_text_is_one_input(http: httpx.Client) -> None:
    response = http.post("/invocations", content="ab", headers={"content-type": "text/plain"})
    assert response.json() == make_vector("ab")


def test_a_csv_body_is_a_batch(http: httpx.Client, ranker: httpx.Client) -> None:
    headers = {"content-type": "text/csv"}
    vectors = http.post("/invocations", content="inputs\nab\nc", headers=headers)
    assert vectors.json() == [make_vector("ab"), make_vector("c")]
    for names in ("text,text_pair", "value,key"):
        scores = ranker.post("/invocations", content=f"{names}\nab,c\na,b", headers=headers)
        assert scores.json() == [[expect_score(3)], [expect_score(2)]]
    assert "inputs[0] must be an object with text and text_pair" in read_refusal(
        ranker.post("/invocations", content="inputs\nab\nc", headers=headers)
    )


def test_the_vector_of_one_text_may_stand_in_a_list() -> None:
    config = ServerConfig(lmi_vector_lists=True)
    files = SentenceFiles(modes=("mean",))
    with serve_vectors("create_embedder", files, config) as server, server.client() as http:
        assert post_json(http, {"inputs": "ab"}) == [make_vector("ab")]
        assert post_json(http, ["ab"]) == [make_vector("ab")]


def test_vectors_have_the_length_that_the_files_of_the_model_say() -> None:
    files = SentenceFiles(modes=("mean",), normalises=True)
    with serve_vectors("create_embedder", files) as server, server.client() as http:
        assert post_json(http, {"inputs": "ab"}) == make_unit_vector("ab")
        assert post_json(http, {"inputs": "ab", "parameters": {"normalize": False}}) == make_vector(
            "ab"
        )


PAIR: Json = {"text": "ab", "text_pair": "c"}
OTHER: Json = {"key": "abc", "value": "d"}


@pytest.mark.parametrize("path", PATHS)
def test_pairs_have_scores(ranker: httpx.Client, path: str) -> None:
    assert post_json(ranker, PAIR, path) == [expect_score(3)]
    assert post_json(ranker, OTHER, path) == [expect_score(4)]
    assert post_json(ranker, [PAIR, OTHER], path) == [[expect_score(3)], [expect_score(4)]]
    assert post_json(ranker, {"query": "ab", "texts": ["cde", "f"]}, path) == [
        [expect_score(5)],
        [expect_score(3)],
    ]
    assert post_json(ranker, {"inputs": PAIR}, path) == [expect_score(3)]
    assert post_json(ranker, {"inputs": [OTHER, PAIR]}, path) == [
        [expect_score(4)],
        [expect_score(3)],
    ]


def test_pairs_may_be_cut(ranker: httpx.Client) -> None:
    long = {"query": "ab", "texts": [TOO_LONG]}
    assert "your texts[0] resulted in" in read_refusal(ranker.post("/invocations", json=long))
    assert post_json(ranker, long | {"parameters": {"truncate": True}}) == [[expect_score(256)]]


def test_a_model_of_embeddings_scores_pairs_by_the_cosine(http: httpx.Client) -> None:
    [[same], [other]] = post_json(http, {"query": "ab", "texts": ["ab", "zz"]})
    assert same == pytest.approx(1) and other < same


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, 'Missing "inputs" in json.'),
        ({"input": "a"}, "input is not supported by this server (use inputs)"),
        ({"inputs": None}, 'Missing "inputs" in json.'),
        ([], "inputs must have a length >= 1, given []"),
        ({"inputs": []}, "inputs must have a length >= 1, given []"),
        ({"inputs": ["a"] * 2049}, "inputs must have 1 to 2048 entries, given 2049"),
        ({"inputs": ["a", 3]}, "inputs[1] must be"),
        (
            {"inputs": ["a", PAIR]},
            "inputs[0] must be an object with text and text_pair: other inputs are pairs",
        ),
        ({"inputs": TOO_LONG}, "your inputs resulted in 300 tokens"),
        ({"inputs": ["a", TOO_LONG]}, "your inputs[1] resulted in 300 tokens"),
        (
            {"inputs": "a", "stream": True},
            "stream must be false: this model writes no text, given true",
        ),
        ({"inputs": "a", "adapters": "mine"}, "Adapter mine is not registered"),
        ({"inputs": "a", "parameters": {"adapter_id": 5}}, "adapter_id must be a string, given 5"),
        (
            {"inputs": "a", "parameters": {"truncate": "x"}},
            'truncate must be true or false, given "x"',
        ),
        ({"inputs": "a", "texts": ["b"]}, "inputs must not be given beside query and texts"),
        ({"messages": [{"role": "user", "content": "a"}]}, "makes embeddings and no text"),
        ({"prompt": "a"}, "makes embeddings and no text"),
        (5, "the body must be a JSON object or a list, given 5"),
    ],
)
def test_invalid_texts_are_named(http: httpx.Client, body: object, message: str) -> None:
    refused = read_refusal(http.post("/invocations", json=body))
    assert refused.startswith(PREFIX) and message in refused


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "Missing text or text_pair in json."),
        ({"text": "a"}, "Missing text or text_pair in json."),
        ([PAIR, {"key": "a"}], "Missing text or text_pair in json."),
        (
            {"inputs": "a"},
            "inputs must be an object with text and text_pair: "
            'this model scores pairs of texts, given "a"',
        ),
        (
            ["a", "b"],
            "inputs[0] must be an object with text and text_pair: "
            'this model scores pairs of texts, given "a"',
        ),
        ({"query": "a"}, "texts is required beside query"),
        ({"texts": ["a"]}, "query is required beside texts"),
        ({"query": "a", "texts": []}, "texts must have a length >= 1, given []"),
        ({"query": 5, "texts": ["a"]}, "query must be a string, given 5"),
        ({"text": "a", "text_pair": 5}, "must be a string, given 5"),
        ({"text": "a", "text_pair": TOO_LONG}, "your text_pair resulted in"),
        ({"inputs": {"text": "a", "text_pair": TOO_LONG}}, "your inputs.text_pair resulted in"),
    ],
)
def test_invalid_pairs_are_named(ranker: httpx.Client, body: object, message: str) -> None:
    refused = read_refusal(ranker.post("/invocations", json=body))
    assert refused.startswith(PREFIX) and message in refused


def test_a_failure_of_the_engine_is_a_424(http: httpx.Client) -> None:
    assert read_refusal(http.post("/invocations", json={"inputs": "\x07"}))
