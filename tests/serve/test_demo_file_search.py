"""The bundled model searches files: it calls the tool, reads a part of a file and answers.

The server is started as a user starts it, beside a small model for embeddings.
"""

from collections.abc import Iterator

import openai
import pytest
import yaml
from openai.types.responses import ResponseFileSearchToolCall

from ouzel.demo import MODEL_DIRECTORY
from tests.serve.running import serving
from tests.small_encoders import write_embedder

MODEL = "ouzel-demo"
TEXTS = {
    "otters.md": "# Otters\n\nOtters hold hands while they sleep.\n",
    "seals.md": "# Seals\n\nSeals eat herring.\n",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    directory = tmp_path_factory.mktemp("server")
    write_embedder(directory / "embedder", " ".join(TEXTS.values()))
    file = directory / "models.yaml"
    models = [
        {"name": MODEL, "model": str(MODEL_DIRECTORY)},
        {"name": "embeddings", "model": str(directory / "embedder"), "task": "embed"},
    ]
    file.write_text(yaml.safe_dump({"models": models}))
    # Whole results in f32: a busy machine must not decide a near-tie in another way.
    exact = ("--precision", "f32", "--kv-cache-dtype", "f32", "--no-prefix-caching")
    arguments = ("--config", str(file), *exact, "--no-prompt-lookup")
    with (
        serving(*arguments, cache_dir=directory / "cache") as server,
        openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def store_id(client: openai.OpenAI) -> str:
    store = client.vector_stores.create(name="animals")
    batch = client.vector_stores.file_batches.upload_and_poll(
        store.id,
        files=[(name, text.encode()) for name, text in TEXTS.items()],
        poll_interval_ms=10,
    )
    assert batch.status == "completed"
    return store.id


def test_a_question_is_searched_and_answered(client: openai.OpenAI, store_id: str) -> None:
    response = client.responses.create(
        model=MODEL,
        input="Can you look up otters in my files?",
        tools=[{"type": "file_search", "vector_store_ids": [store_id], "max_num_results": 1}],
        include=["file_search_call.results"],
        temperature=0,
    )
    search, message = response.output
    assert isinstance(search, ResponseFileSearchToolCall)
    assert (search.status, search.queries) == ("completed", ["otters"])
    assert search.results is not None
    assert [result.filename for result in search.results] == ["otters.md"]
    assert message.type == "message"
    assert "Otters hold hands" in response.output_text


def test_a_forced_search_ends_with_an_answer(client: openai.OpenAI, store_id: str) -> None:
    response = client.responses.create(
        model=MODEL,
        input="Search for seals.",
        tools=[{"type": "file_search", "vector_store_ids": [store_id], "max_num_results": 1}],
        tool_choice="required",
        max_output_tokens=80,
        temperature=0,
    )
    search, *_, message = response.output
    assert isinstance(search, ResponseFileSearchToolCall)
    assert search.queries == ["seals"]
    assert message.type == "message"
