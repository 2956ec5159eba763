"""A server is killed or stopped during responses in the background; the next server continues."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from openai.types.responses import Response

from ouzel.store.sql_store import open_store
from tests.serve.background import ENDLESS, SHORT, begin, check_failed, ended, found, with_text
from tests.serve.running import RunningServer, serving

NUM_RUNNING = 4


@pytest.fixture
def cache_dir(tmp_path: Path) -> Path:
    return tmp_path


@contextmanager
def life(
    cache_dir: Path, *, drain_timeout_s: float = 600
) -> Iterator[tuple[RunningServer, httpx.Client]]:
    """Starts a server on the data of the server before."""
    options = ("--max-num-seqs", str(NUM_RUNNING), "--drain-timeout-s", str(drain_timeout_s))
    with (
        serving(*options, cache_dir=cache_dir, is_executed=True) as server,
        httpx.Client(base_url=server.url, timeout=None) as http,
    ):
        yield server, http


async def wait_until_text_is_stored(cache_dir: Path, ids: list[str]) -> None:
    """Reads the store beside the server, which writes shown text within half a second."""
    store = await open_store(
        f"sqlite:///{cache_dir}/data/responses.sqlite3", max_age_s=3600, max_bytes=2**30
    )
    for response_id in ids:
        while (
            kept := await store.response(response_id, None)
        ) is None or not Response.model_validate_json(kept.body).output_text:
            await asyncio.sleep(0.02)
    await store.close()


@pytest.mark.release("restarts of a server with stored responses, and stored prefixes")
def test_kill_9_loses_nothing_and_leaves_nothing_hanging(cache_dir: Path) -> None:
    with life(cache_dir) as (server, http):
        engine = server.engine_process()
        ids = begin(http, *[ENDLESS] * NUM_RUNNING)
        asyncio.run(wait_until_text_is_stored(cache_dir, ids))
        ids += begin(http, *[SHORT] * 16)  # now, for short prompts go first
        running = [found(http, response_id) for response_id in ids[:NUM_RUNNING]]
        assert {found(http, response_id).status for response_id in ids[NUM_RUNNING:]} == {"queued"}
        server.process.kill()
        engine.wait()

    with life(cache_dir) as (_, http):
        statuses = [found(http, response_id).status for response_id in ids]
        assert {*statuses[:NUM_RUNNING]} <= {
            "in_progress",
            "failed",
        }  # failed once the lease of the killed one is over
        assert {*statuses[NUM_RUNNING:]} <= {"queued", "in_progress", "completed"}
        after = [ended(http, response_id) for response_id in ids]
        for failed, seen in zip(after[:NUM_RUNNING], running, strict=True):
            check_failed(failed, seen)
            assert failed.error is not None and "the server stopped" in failed.error.message
        assert [
            (response.status, bool(response.output_text)) for response in after[NUM_RUNNING:]
        ] == [("completed", True)] * 16


def test_sigterm_ends_running_responses_and_leaves_queued_ones_to_the_next_server(
    cache_dir: Path,
) -> None:
    with life(cache_dir, drain_timeout_s=0.1) as (server, http):
        ids = begin(http, *[ENDLESS] * NUM_RUNNING)
        running = [with_text(http, response_id) for response_id in ids]
        ids += begin(http, *[SHORT] * 6)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait() == 0

    with life(cache_dir) as (server, http):
        for response_id, seen in zip(ids, running, strict=False):
            failed = ended(http, response_id)
            assert failed.error is not None and "shutting down" in failed.error.message
            assert failed.output_text.startswith(seen.output_text)
        assert [ended(http, response_id).status for response_id in ids[NUM_RUNNING:]] == [
            "completed"
        ] * 6

        in_time = begin(http, *[ENDLESS | {"max_output_tokens": 100}] * (2 * NUM_RUNNING))
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait() == 0

    with life(cache_dir) as (_, http):
        assert {found(http, response_id).status for response_id in in_time} == {"incomplete"}
