"""A server is killed while it indexes files of a vector store; the next server goes on.

`tests/hosted_tools/file_search/test_killed_indexing.py` has a kill at each step, in one process.
"""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import openai
import yaml

from tests.serve.running import RunningServer, serving
from tests.small_encoders import write_embedder

NUM_FILES = 4
NUM_SECTIONS = 150


def write_text(number: int) -> str:
    sections = (
        f"# Part {part} of {number}\n\n" + "Otters hold hands while they sleep. " * 20
        for part in range(NUM_SECTIONS)
    )
    return "\n\n".join(sections)


def connect(server: RunningServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key="none", max_retries=0, timeout=None)


def read_chunks(directory: Path) -> list[tuple[int, ...]]:
    """Returns, for each file, the number of its chunks, of their positions, and the last one."""
    [path] = directory.rglob("responses.sqlite3")
    query = (
        "SELECT count(*), count(DISTINCT position), max(position) + 1 FROM vector_store_chunks "
        "GROUP BY file_number"
    )
    with closing(sqlite3.connect(path)) as store:
        return store.execute(query).fetchall()


def test_kill_9_loses_no_chunk_and_stores_none_twice(tmp_path: Path) -> None:
    write_embedder(tmp_path / "embedder", write_text(0)[:2000])
    config = tmp_path / "models.yaml"
    model = {"name": "embeddings", "model": str(tmp_path / "embedder"), "task": "embed"}
    config.write_text(yaml.safe_dump({"models": [model]}))
    options = ("--config", str(config))
    with serving(*options, cache_dir=tmp_path, is_executed=True) as server:
        engine = server.engine_process()
        with connect(server) as client:
            file_ids = [
                client.files.create(
                    file=(f"{number}.md", write_text(number).encode()), purpose="assistants"
                ).id
                for number in range(NUM_FILES)
            ]
            store_id = client.vector_stores.create(name="animals").id
            batch_id = client.vector_stores.file_batches.create(store_id, file_ids=file_ids).id
            while len(read_chunks(tmp_path)) < 2:  # the second file is being indexed
                time.sleep(0.01)
        server.process.kill()
        engine.wait()

    with serving(*options, cache_dir=tmp_path) as server, connect(server) as client:
        batch = client.vector_stores.file_batches.poll(
            batch_id, vector_store_id=store_id, poll_interval_ms=20
        )
        assert (batch.status, batch.file_counts.completed) == ("completed", NUM_FILES)
        [hit, *_] = client.vector_stores.search(store_id, query="Part 7 of 3")
        assert "Otters" in hit.content[0].text
    counts = read_chunks(tmp_path)
    assert len(counts) == NUM_FILES
    assert len(set(counts)) == 1  # the files differ in their numbers only
    [(num_chunks, num_positions, length)] = set(counts)
    assert num_chunks == num_positions == length
    assert num_chunks >= NUM_SECTIONS / 10
