"""Two servers share a Postgres: each uses, cancels, deletes and continues the other's responses."""

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import httpx
import pytest

from tests.api.responses.strict import named_events, strict_events, strict_response
from tests.postgres import PostgresServer
from tests.serve.background import ENDLESS, SHORT, begin, check_failed, ended, found, with_text
from tests.serve.running import RunningServer, serving


class Pair(NamedTuple):
    one: httpx.Client
    other: httpx.Client
    first: RunningServer


@pytest.fixture(scope="module")
def pair(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    options = ("--store-url", postgres_server.new_database(), "--max-num-seqs", "2")
    cache_dir = tmp_path_factory.mktemp("cache")
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(*options, cache_dir=cache_dir)) for _ in range(2)]
        clients = [
            stack.enter_context(httpx.Client(base_url=server.url, timeout=None))
            for server in servers
        ]
        yield Pair(clients[0], clients[1], servers[0])


def test_each_server_reads_and_replays_the_others_responses(pair: Pair) -> None:
    answer = pair.one.post("responses", json=SHORT | {"model": "ouzel-demo", "stream": True})
    [*_, end] = strict_events(answer)
    assert end.type == "response.completed"

    assert found(pair.other, end.response.id) == end.response
    replayed = pair.other.get(f"responses/{end.response.id}", params={"stream": True})
    assert named_events(replayed) == named_events(answer)


def test_the_other_server_streams_a_running_response(pair: Pair) -> None:
    [response_id] = begin(pair.one, ENDLESS)
    with pair.other.stream("GET", f"responses/{response_id}", params={"stream": True}) as following:
        lines = following.iter_lines()
        assert any("response.output_text.delta" in line for line in lines)
        assert found(pair.one, response_id).status == "in_progress"
        pair.one.post(f"responses/{response_id}/cancel")
        [*_, last, done] = [line for line in lines if line.startswith("data: ")]
    assert done == "data: [DONE]"
    assert json.loads(last.removeprefix("data: "))["response"]["status"] == "cancelled"


def test_the_other_server_continues_a_response(pair: Pair) -> None:
    first = strict_response(pair.one.post("responses", json=SHORT | {"model": "ouzel-demo"}).text)
    body = {
        "model": "ouzel-demo",
        "input": "And what is 2 plus 3?",
        "previous_response_id": first.id,
    }
    second = strict_response(pair.other.post("responses", json=body).text)
    listed = pair.one.get(f"responses/{second.id}/input_items", params={"order": "asc"}).json()[
        "data"
    ]
    assert [item["content"][0]["text"] for item in listed] == [
        "Hello!",
        first.output_text,
        "And what is 2 plus 3?",
    ]


def test_the_other_server_cancels_running_and_queued_responses(pair: Pair) -> None:
    ids = begin(pair.one, ENDLESS, ENDLESS, ENDLESS)
    for response_id in ids[:2]:
        with_text(pair.one, response_id)
    assert found(pair.other, ids[2]).status == "queued"

    for response_id in reversed(ids):
        cancelled = strict_response(pair.other.post(f"responses/{response_id}/cancel").text)
        assert cancelled.status == "cancelled"
        assert ended(pair.other, response_id) == cancelled

    wait_until_idle(pair.one)
    assert [ended(pair.one, response_id).status for response_id in ids] == ["cancelled"] * 3


def test_the_other_server_deletes_a_running_response(pair: Pair) -> None:
    [response_id] = begin(pair.one, ENDLESS)
    with_text(pair.one, response_id)
    assert pair.other.delete(f"responses/{response_id}").status_code == 200
    wait_until_idle(pair.one)
    assert pair.one.get(f"responses/{response_id}").status_code == 404


def wait_until_idle(http: httpx.Client) -> None:
    def num_requests() -> float:
        lines = http.get(f"{str(http.base_url).removesuffix('/v1/')}/metrics").text.splitlines()
        wanted = ("vllm:num_requests_running", "vllm:num_requests_waiting")
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(wanted))

    while num_requests():
        time.sleep(0.05)


def test_the_other_server_takes_over_the_responses_of_a_killed_one(pair: Pair) -> None:
    """This test stops a server, so it is the last of the file."""
    ids = begin(pair.one, ENDLESS, ENDLESS)
    running = [with_text(pair.other, response_id) for response_id in ids]
    ids += begin(pair.one, SHORT, SHORT, SHORT)
    pair.first.process.kill()

    for response_id, seen in zip(ids, running, strict=False):
        check_failed(ended(pair.other, response_id), seen)
    assert [ended(pair.other, response_id).status for response_id in ids[2:]] == ["completed"] * 3
