"""Starts a server whose first model repeats the user's message; the second makes vectors."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import openai

from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.config import ServerConfig
from ouzel.parsers.families.hermes import HERMES
from ouzel.parsers.registry import THINKING_ONLY, OutputFormat
from tests.api.server_setup import ServerSetup
from tests.api.serving import RunningServer, running_server
from tests.prompts.families import QWEN

TEXTS = {
    "otters.md": "# Otters\n\nOtters hold hands while they sleep.\n\n## Food\n\nThey eat crabs.\n",
    "seals.md": "# Seals\n\nSeals sleep on the ice and eat herring.\n",
    "pay.txt": "The salary of March is paid on the last Friday.\n",
}
EMBEDDER = ServerSetup(
    names=("embedder",),
    engine_factory="tests.engine.vector_runner:create_embedder",
    has_chat_template=False,
    sentences=SentenceFiles(modes=("mean",)),
)


def search_server(
    file: Path,
    *,
    has_embedder: bool = True,
    config: ServerConfig = ServerConfig(),  # noqa: B008
    bytes_per_key: int = 2**30,
) -> AbstractContextManager[RunningServer]:
    return running_server(
        {"max_model_len": 16384, "step_s": 0.0},
        chat_template=QWEN,
        output_format=OutputFormat(calls=HERMES, reasoning=THINKING_ONLY),
        store_url=f"sqlite:///{file}",
        config=config,
        vector_bytes_per_key=bytes_per_key,
        further=(EMBEDDER,) if has_embedder else (),
    )


@contextmanager
def connect(server: RunningServer, api_key: str = "one") -> Iterator[openai.OpenAI]:
    """Connects the official client, without a limit of time."""
    with openai.OpenAI(
        base_url=f"{server.url}/v1", api_key=api_key, max_retries=0, timeout=None
    ) as client:
        yield client


def upload(client: openai.OpenAI, name: str, text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return client.files.create(file=(name, data), purpose="assistants").id


def fill(client: openai.OpenAI, texts: dict[str, str], **fields: object) -> str:
    """Makes a vector store of texts by their names; returns its id when all are indexed."""
    store = client.vector_stores.create(name="notes", extra_body=fields)
    batch = client.vector_stores.file_batches.create_and_poll(
        store.id,
        file_ids=[upload(client, name, text) for name, text in texts.items()],
        poll_interval_ms=10,
    )
    assert batch.status == "completed", batch.to_json()
    return store.id


def read_problem(error: openai.APIStatusError) -> tuple[int, str | None]:
    """Returns the status and the field of an error."""
    body = json.loads(error.response.text)["error"]
    return error.status_code, body["param"]
