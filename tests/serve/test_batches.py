"""Tests kill servers in the middle of a batch, and let several servers share one.

`tests/batches/test_kills.py` has a kill at each step, in one process.
"""

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any  # JSON

import httpx
import msgspec
import pytest

from tests.api.batches.setup import chat_line, create, download, jsonl, upload, wait
from tests.serve.running import RunningServer, serving

pytestmark = pytest.mark.serves
NUM_LINES = 120
NUM_KILLS = 2


def make_lines(num_lines: int) -> list[dict[str, Any]]:
    return [
        chat_line(f"id-{number}", f"Count to {number}.", model="ouzel-demo", max_tokens=8)
        for number in range(num_lines)
    ]


def open_client(server: RunningServer) -> httpx.Client:
    return httpx.Client(base_url=server.root, timeout=None)


def read_stored_results(directory: Path) -> dict[str, bytes]:
    """Returns the results in the store of a dead server, by custom_id."""
    [path] = directory.rglob("responses.sqlite3")
    with closing(sqlite3.connect(path)) as store:
        query = 'SELECT custom_id, result FROM batch_lines WHERE "end" IS NOT NULL'
        return dict(store.execute(query).fetchall())


def test_kill_9_loses_no_result_and_runs_no_line_twice(tmp_path: Path) -> None:
    moments = random.Random(1)
    stored: dict[str, bytes] = {}
    batch_id = ""
    for _ in range(NUM_KILLS):
        with (
            serving(cache_dir=tmp_path, is_executed=True) as server,
            open_client(server) as http,
        ):
            engine = server.engine_process()
            if not batch_id:
                batch_id = create(http, upload(http, jsonl(make_lines(NUM_LINES))))["id"]
            least = len(stored) + moments.choice([0, 1, 20, 40])
            while (batch := http.get(f"/v1/batches/{batch_id}").json())["status"] == "validating":
                time.sleep(moments.uniform(0.0, 0.02))
            while batch["request_counts"]["completed"] < least and batch["status"] != "completed":
                batch = http.get(f"/v1/batches/{batch_id}").json()
            time.sleep(moments.uniform(0.0, 0.1))
            server.process.kill()
            engine.wait()
        found = read_stored_results(tmp_path)
        if found:  # empty after the end: the results are in the output file
            assert stored.items() <= found.items()
            stored = found
    with serving(cache_dir=tmp_path) as server, open_client(server) as http:
        batch = wait(http, batch_id)
        assert batch["status"] == "completed"
        assert batch["request_counts"] == {
            "total": NUM_LINES,
            "completed": NUM_LINES,
            "failed": 0,
        }
        results = download(http, batch["output_file_id"])
    assert [each["custom_id"] for each in results] == [f"id-{each}" for each in range(NUM_LINES)]
    by_id = {each["custom_id"]: each for each in results}
    for custom_id, result in stored.items():
        assert by_id[custom_id] == msgspec.json.decode(result)


def test_a_stop_gives_the_lines_back_at_once(tmp_path: Path) -> None:
    with serving(cache_dir=tmp_path) as server, open_client(server) as http:
        lines = make_lines(400)
        for line in lines:
            line["body"] |= {"max_tokens": 200, "ignore_eos": True}
        batch_id = create(http, upload(http, jsonl(lines)))["id"]
        wait(http, batch_id, lambda batch: batch["request_counts"]["completed"] > 0)
        server.process.terminate()
        assert server.process.wait() == 0
    [path] = tmp_path.rglob("responses.sqlite3")
    with closing(sqlite3.connect(path)) as store:
        query = 'SELECT count(*) FROM batch_lines WHERE owner IS NOT NULL AND "end" IS NULL'
        assert store.execute(query).fetchone() == (0,)


@pytest.fixture
def two_servers(tmp_path: Path, postgres_url: str) -> Iterator[list[RunningServer]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                serving("--store-url", postgres_url, cache_dir=tmp_path / str(number))
            )
            for number in range(2)
        ]


def test_two_servers_share_a_batch(two_servers: list[RunningServer]) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(open_client(server)) for server in two_servers]
        lines = make_lines(600)
        batch_id = create(clients[0], upload(clients[0], jsonl(lines)))["id"]
        batch = wait(clients[1], batch_id)

        assert batch["request_counts"] == {"total": 600, "completed": 600, "failed": 0}
        results = download(clients[1], batch["output_file_id"])
        assert [each["custom_id"] for each in results] == [line["custom_id"] for line in lines]
        num_generated = [count_generated(http) for http in clients]
    assert min(num_generated) > 0
    usage = batch["usage"]
    assert sum(num_generated) == usage["output_tokens"]


def count_generated(http: httpx.Client) -> int:
    """Returns the tokens that a server has generated."""
    prefix = "vllm:generation_tokens_total{"
    lines = http.get("/metrics").text.splitlines()
    return int(sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(prefix)))
