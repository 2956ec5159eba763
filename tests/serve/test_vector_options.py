"""`ouzel serve` with the options of models that make vectors and scores."""

from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import numpy as np
import pytest
import yaml

from tests.backends.test_openvino_sentences import GOLDEN
from tests.serve.running import RunningServer, serving

TEXT = "snow and rain"
LONG = "snow " * 2000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Starts a server whose models have options of their own."""
    directory = tmp_path_factory.mktemp("server")
    model = str(GOLDEN / "bert-poolings")
    config = {
        "weights": "f32",
        "precision": "f32",
        "models": [
            {
                "name": "last",
                "model": model,
                "pooling": "lasttoken",
                "normalize": True,
                "truncate": True,
            },
            {"name": "plain", "model": model},
            {"name": "bge", "model": str(GOLDEN / "bge")},
            {
                "name": "raw",
                "model": str(GOLDEN / "minilm"),
                "normalize": False,
                "max_document_chunks": 3,
            },
            {"name": "ranker", "model": str(GOLDEN / "cross-bert"), "max_model_len": 16},
            {
                "name": "strict",
                "model": str(GOLDEN / "cross-bert"),
                "max_model_len": 16,
                "max_document_chunks": 0,
            },
        ],
    }
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    with serving("--config", str(path), cache_dir=directory) as server:
        yield server


def post(server: RunningServer, path: str, **body: object) -> httpx.Response:
    return httpx.post(server.root + path, json=body, timeout=None)


def vector(server: RunningServer, model: str, **fields: object) -> Any:
    response = post(server, "/v1/embeddings", **{"model": model, "input": TEXT, **fields})
    assert response.status_code == 200, response.text
    return np.array(response.json()["data"][0]["embedding"])


def test_the_pooling_of_a_model_is_its_option(server: RunningServer) -> None:
    last = vector(server, "plain")[96:]  # the fourth of the poolings that the files name
    np.testing.assert_allclose(vector(server, "last", normalize=False), last, atol=1e-5)


def test_the_length_of_vectors_is_the_option_unless_a_request_says_it(
    server: RunningServer,
) -> None:
    lengths = [
        float(np.linalg.norm(vector(server, model, **fields)))
        for model, fields in (
            ("last", {}),
            ("raw", {"normalize": True}),
            ("raw", {}),
            ("plain", {}),
        )
    ]
    assert lengths[:2] == pytest.approx([1, 1], abs=1e-6)
    assert all(abs(length - 1) > 0.01 for length in lengths[2:])


def test_cohere_clients_get_the_length_of_the_option(server: RunningServer) -> None:
    for model, has_length_1 in (("last", True), ("raw", False)):
        answer = post(
            server, "/v2/embed", model=model, texts=[TEXT], input_type="search_document"
        ).json()
        length = float(np.linalg.norm(answer["embeddings"]["float"][0]))
        assert (abs(length - 1) < 1e-6) is has_length_1


def test_long_texts_are_cut_by_the_option_unless_a_request_says_it(server: RunningServer) -> None:
    cut = vector(server, "last", input=LONG)
    np.testing.assert_allclose(cut, vector(server, "last", input=LONG, truncate=True), atol=1e-6)
    for model, fields in (("last", {"truncate": False}), ("plain", {})):
        error = post(server, "/v1/embeddings", model=model, input=LONG, **fields).json()["error"]
        assert (error["code"], error["param"]) == ("context_length_exceeded", "input")


def test_clients_of_tei_get_long_texts_cut_by_the_option(server: RunningServer) -> None:
    statuses = [
        post(server, "/embed", model=model, inputs=LONG).status_code for model in ("last", "plain")
    ]
    assert statuses == [200, 413]
    scored = [
        post(server, "/v1/score", model=model, text_1=TEXT, text_2=LONG).status_code
        for model in ("last", "plain")
    ]
    assert scored == [200, 400]


def test_the_description_for_clients_of_tei_has_the_options_of_the_first_model(
    server: RunningServer,
) -> None:
    info = httpx.get(f"{server.root}/info", timeout=None).json()
    assert (info["model_type"], info["auto_truncate"]) == (
        {"embedding": {"pooling": "lasttoken"}},
        True,
    )


def test_long_documents_are_divided_as_the_option_says(server: RunningServer) -> None:
    body = {"query": "snow", "documents": ["rain " * 30]}
    ranked = post(server, "/v1/rerank", model="ranker", **body).json()
    refused = post(server, "/v1/rerank", model="strict", **body).json()["error"]
    bounded = post(server, "/v1/rerank", model="raw", **body | {"documents": [LONG]}).json()[
        "error"
    ]
    assert ranked["usage"]["prompt_tokens"] == 30 + 3 * len(["[CLS]", "snow", "[SEP]", "[SEP]"])
    assert (refused["code"], refused["param"]) == ("context_length_exceeded", "documents[0]")
    assert bounded["message"].startswith("documents must come to <= 3 pieces in all")


@pytest.fixture(scope="module")
def ovms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    models = [
        argument
        for name in ("bge", "bert-poolings")
        for argument in ("--model", f"{name}={GOLDEN / name}")
    ]
    arguments = ("--profile", "ovms", "--weights", "f32", "--precision", "f32", *models)
    with serving(*arguments, cache_dir=tmp_path_factory.mktemp("ovms")) as server:
        yield server


def test_texts_have_no_prompt_with_the_profile_of_ovms(
    server: RunningServer, ovms: RunningServer
) -> None:
    raw, prompted = vector(ovms, "bge"), vector(ovms, "bge", prompt_name="query")
    np.testing.assert_allclose(
        vector(server, "bge"), prompted, atol=1e-6
    )  # the files name it as the default
    np.testing.assert_allclose(vector(server, "bge", prompt_name="document"), raw, atol=1e-6)
    assert np.abs(raw - prompted).max() > 0.01


@pytest.mark.release("vectors with the profile of OVMS")
def test_vectors_have_the_length_1_with_the_profile_of_ovms(ovms: RunningServer) -> None:
    answer = post(ovms, "/v3/embeddings", model="bert-poolings", input=TEXT).json()
    too_long = post(ovms, "/v3/embeddings", model="bert-poolings", input=LONG)
    assert answer.keys() == {"object", "data", "model", "usage"}
    assert np.linalg.norm(answer["data"][0]["embedding"]) == pytest.approx(1, abs=1e-6)
    assert (too_long.status_code, too_long.json().keys()) == (400, {"error"})
