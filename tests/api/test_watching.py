"""Monitoring reads /metrics without a key, at a port of its own if there is one."""

import logging
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio

from ouzel.api.app import build_probe_app
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.config import LimitsConfig, ServerConfig
from tests.api.requests import chat, read_error, sum_metric, wait_until
from tests.api.serving import RunningServer, running_server

PROBES = ("/health", "/ping", "/v2/health/live", "/v2/health/ready", "/v2/models/org/parrot/ready")


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningServer]:
    with running_server(config=ServerConfig(api_key=("sk-first",), open_metrics=True)) as server:
        yield server


@pytest_asyncio.fixture
async def watching(guarded: RunningServer) -> AsyncIterator[httpx.AsyncClient]:
    """Yields a client of the app behind the port of metrics."""
    catalogue = Catalogue(
        [guarded.model], LimitsConfig(), ServerConfig(api_key=("sk-first",)), None
    )
    transport = httpx.ASGITransport(build_probe_app(catalogue))
    async with httpx.AsyncClient(transport=transport, base_url="http://watch") as client:
        yield client


def test_open_metrics_need_no_key_and_all_else_does(guarded: RunningServer) -> None:
    with guarded.client() as http:
        assert sum_metric(http.get("/metrics").text, "ouzel_num_requests_running") == 0
        assert http.get("/v1/models").status_code == 401
        assert http.get("/metrics/x").status_code == 401
        assert http.get("/v2/models/parrot/ready").status_code == 401


@pytest.mark.parametrize("path", [*PROBES, "/metrics"])
async def test_the_monitoring_app_needs_no_key(watching: httpx.AsyncClient, path: str) -> None:
    response = await watching.get(path, headers={"x-request-id": "mine"})

    assert response.status_code == 200
    assert response.headers["x-request-id"] == "mine"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions"),
        ("GET", "/openapi.json"),
        ("GET", "/"),
    ],
)
async def test_the_monitoring_app_has_no_other_paths(
    watching: httpx.AsyncClient, method: str, path: str
) -> None:
    response = await watching.request(method, path)

    assert response.status_code == 404
    assert read_error(response)["code"] == "unknown_url"


def test_a_server_that_stops_reports_it_and_takes_late_requests() -> None:
    with running_server() as server, server.client() as http:
        server.engine.leave()
        server.engine.leave()

        assert (http.get("/health").status_code, http.get("/health").json()["status"]) == (
            503,
            "leaving",
        )
        unready = ("/ping", "/v2/health/ready", "/v2/models/parrot/ready")
        assert [http.get(path).status_code for path in unready] == [503] * 3
        assert http.get("/v2/health/live").status_code == 200
        assert http.post("/v1/chat/completions", json=chat("Hi")).status_code == 200


def test_an_engine_that_dies_while_the_server_leaves_does_not_bring_it_back() -> None:
    with running_server() as server, server.client() as http:
        server.engine.leave()

        assert http.post("/v1/chat/completions", json=chat("<|die|>")).status_code == 500
        wait_until(
            lambda: (
                server.engine.num_restarts == 1
                and http.get("/health").json()["status"] != "restarting"
            )
        )

        assert http.get("/health").json()["status"] == "leaving"
        assert http.post("/v1/chat/completions", json=chat("Hi")).status_code == 200


def test_scrapes_and_probes_are_in_the_log_of_level_debug_only(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="ouzel")
    for path in (*PROBES, "/metrics"):
        assert http.get(path).status_code == 200
    assert http.get("/v2/models/owl/ready").status_code == 404
    assert http.put("/health").status_code == 405
    http.post("/v1/chat/completions", json=chat("Hi"))

    # the server writes the log line after the response
    wait_until(lambda: "chat/completions 200" in caplog.text)
    lines = [record for record in caplog.records if record.name == "ouzel.api.http.request_log"]
    told = [
        record.getMessage().partition(" duration_s")[0]
        for record in lines
        if record.levelno >= logging.INFO
    ]
    assert told[:2] == ["GET /v2/models/owl/ready 404", "PUT /health 405"]
    assert len([record for record in lines if record.levelno == logging.DEBUG]) == len(PROBES) + 1
