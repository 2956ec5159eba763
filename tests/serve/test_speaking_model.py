"""A server with a model that speaks tells so, and refuses other requests by its task."""

from collections.abc import Iterator

import httpx
import pytest

from tests.kokoro_files.tiny_models import write_onnx_form
from tests.serve.running import RunningServer, serving


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = write_onnx_form(tmp_path_factory.mktemp("models") / "tiny")
    with serving(str(directory), cache_dir=tmp_path_factory.mktemp("cache")) as running:
        yield running


def test_the_list_of_models_has_its_task(server: RunningServer) -> None:
    [model] = httpx.get(f"{server.url}/models", timeout=None).json()["data"]
    assert (model["id"], model["capabilities"]) == ("tiny", ["speech"])
    assert model["max_model_len"] == 510
    assert model["architecture"]["output_modalities"] == ["audio"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": "Hello"}]}),
        ("completions", {"prompt": "Hello"}),
        ("embeddings", {"input": "Hello"}),
    ],
)
def test_other_requests_are_refused_by_its_task(
    server: RunningServer, path: str, body: dict[str, object]
) -> None:
    answer = httpx.post(f"{server.url}/{path}", json={"model": "tiny", **body}, timeout=None)
    assert answer.status_code == 400
    assert "reads texts aloud" in answer.json()["error"]["message"]
