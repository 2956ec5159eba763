"""`ouzel serve` takes OVMS's config.json with chat, embeddings and rerank models."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any  # JSON

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from ouzel.demo import MODEL_DIRECTORY
from tests.backends.test_openvino_ir_encoders import ir_directory
from tests.backends.test_openvino_sentences import read_golden
from tests.options.ovms_graphs import write_graph, write_vectors_graph
from tests.serve.running import serving

EMBEDDER, RERANKER = read_golden("minilm"), read_golden("cross-bert")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes directories as export_model.py of OVMS leaves them: a graph beside an OpenVINO IR."""
    directory = tmp_path_factory.mktemp("models")
    ir_directory(directory / "embedder", "minilm", "modules.json", "1_Pooling", weights="int8")
    ir_directory(directory / "reranker", "cross-bert")
    write_graph_file(
        directory, "chat", write_graph(f'models_path: "{MODEL_DIRECTORY}" max_tokens_limit: 20')
    )
    write_graph_file(directory, "embedder", embeddings_graph("MEAN"))
    reranker = 'models_path: "./", max_allowed_chunks: 7, target_device: "CPU"'
    write_graph_file(directory, "reranker", write_vectors_graph("Rerank", reranker))
    entries = [
        {"config": {"name": name, "base_path": name}} for name in ("chat", "embedder", "reranker")
    ]
    (directory / "config.json").write_text(json.dumps({"model_config_list": entries}))
    return directory


@pytest.fixture(scope="module")
def http(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    flags = (
        "--profile",
        "ovms",
        "--rest_port",
        "0",
        "--config_path",
        str(models / "config.json"),
        "--no-store",
    )
    cache_dir = tmp_path_factory.mktemp("cache")
    with (
        serving(*flags, "--file_system_poll_wait_seconds", "0", cache_dir=cache_dir) as server,
        httpx.Client(base_url=server.root, timeout=None) as client,
    ):
        yield client


def write_graph_file(models: Path, name: str, graph: str) -> None:
    (models / name).mkdir(exist_ok=True)
    (models / name / "graph.pbtxt").write_text(graph)


def embeddings_graph(pooling: str) -> str:
    return write_vectors_graph(
        "Embeddings", f'models_path: "./", truncate: true, pooling: {pooling}, target_device: "CPU"'
    )


def post(http: httpx.Client, path: str, **body: object) -> Any:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def vectors(http: httpx.Client, *texts: str) -> NDArray[np.float32]:
    data = post(http, "/v3/embeddings", model="embedder", input=list(texts))["data"]
    return np.array([each["embedding"] for each in data], np.float32)


def test_each_model_does_its_own_task(http: httpx.Client) -> None:
    chat = post(
        http, "/v3/chat/completions", model="chat", messages=[{"role": "user", "content": "12+5?"}]
    )
    ranked = post(
        http, "/v3/rerank", model="reranker", query=RERANKER.query, documents=RERANKER.texts
    )["results"]
    scores = {result["index"]: result["relevance_score"] for result in ranked}

    assert chat["choices"][0]["message"]["content"]
    cosines = (vectors(http, *EMBEDDER.texts) * EMBEDDER.arrays["vectors"]).sum(axis=1)
    assert cosines.min() > 0.99  # the weights are int8
    expected = RERANKER.arrays["scores"].reshape(-1)
    assert [scores[index] for index in range(len(expected))] == pytest.approx(
        expected.tolist(), abs=0.1
    )
    assert [model["id"] for model in http.get("/v3/models").json()["data"]] == [
        "chat",
        "embedder",
        "reranker",
    ]


def test_a_request_to_a_model_of_another_task_is_refused(http: httpx.Client) -> None:
    for path, body in (
        ("/v3/embeddings", {"model": "chat", "input": "snow"}),
        (
            "/v3/chat/completions",
            {"model": "embedder", "messages": [{"role": "user", "content": "Hi"}]},
        ),
        ("/v3/rerank", {"model": "chat", "query": "snow", "documents": ["rain"]}),
    ):
        response = http.post(path, json=body)
        assert (response.status_code, response.json().keys()) == (400, {"error"}), path


def test_long_texts_are_cut_as_the_graph_says(http: httpx.Client) -> None:
    assert np.linalg.norm(vectors(http, "snow " * 2000)) == pytest.approx(1, abs=1e-5)


def test_pieces_of_documents_are_limited_as_the_graph_says(http: httpx.Client) -> None:
    long = "the river is cold " * 100
    scored = post(
        http, "/v3/rerank", model="reranker", query="where is the cat", documents=["snow"] * 7
    )["results"]
    too_many = http.post(
        "/v3/rerank",
        json={"model": "reranker", "query": "where is the cat", "documents": [long] * 2},
    )

    assert len(scored) == 7
    assert too_many.status_code == 400
    assert "7" in too_many.json()["error"]


@pytest.mark.release("vectors with the profile of OVMS")
def test_a_changed_pooling_loads_its_model_again_and_no_other(
    http: httpx.Client, models: Path
) -> None:
    before = vectors(http, "snow and rain")
    created = {name: model_state(http, name) for name in ("chat", "reranker")}
    write_graph_file(models, "embedder", embeddings_graph("LAST"))
    state = http.post("/v1/config/reload")
    after = vectors(http, "snow and rain")
    write_graph_file(models, "embedder", embeddings_graph("MAX"))
    refused = http.post("/v1/config/reload")

    assert (state.status_code, refused.status_code) == (200, 200)
    assert (before * after).sum() < 0.99
    assert np.abs(vectors(http, "snow and rain") - after).max() < 1e-3  # the model stays as it is
    assert {name: model_state(http, name) for name in created} == created


def model_state(http: httpx.Client, name: str) -> Any:
    return http.get(f"/v3/models/{name}").json()["created"]
