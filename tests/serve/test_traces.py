"""Traces, as a collector gets them from a server in a process of its own."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any  # JSON

import httpx
import pytest
from openai import OpenAI

from ouzel.cli.app import main
from tests.serve.collector import Collector, ReceivedSpan
from tests.serve.running import serving

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PHASES = ["queue", "prefill", "decode"]
ASK: dict[str, Any] = {
    "model": "ouzel-demo",
    "messages": [{"role": "user", "content": "Count."}],
    "max_tokens": 8,
    "ignore_eos": True,
}


@dataclass
class Traced:
    """Spans and log lines of a server that got one request of each kind."""

    collector: Collector
    log: list[dict[str, Any]]
    response_id: str

    def span(self, name: str, **attributes: object) -> ReceivedSpan:
        found = [
            span
            for span in self.collector.spans
            if span.name == name
            and all(span.attributes.get(key) == value for key, value in attributes.items())
        ]
        assert len(found) == 1, [span.name for span in self.collector.spans]
        return found[0]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    options = ("--log-format", "json", "--log-level", "info")
    with Collector().running() as collector:
        endpoint = ("--otlp-traces-endpoint", collector.url)
        with serving(*options, *endpoint, cache_dir=tmp_path_factory.mktemp("cache")) as server:
            parent = {
                "traceparent": f"00-{TRACE}-{PARENT}-01",
                "tracestate": "x=y",
                "x-request-id": "mine",
            }
            httpx.post(f"{server.url}/chat/completions", json=ASK, headers=parent, timeout=None)
            httpx.get(f"{server.root}/health")
            httpx.get(f"{server.root}/metrics")
            httpx.get(f"{server.url}/models/owl")
            unsampled = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
            httpx.get(f"{server.url}/models", headers=unsampled)
            with OpenAI(base_url=server.url, api_key="none") as client:
                ask: dict[str, Any] = {
                    "model": "ouzel-demo",
                    "input": "Count.",
                    "max_output_tokens": 16,
                }
                response = client.responses.create(**ask, background=True)
                while client.responses.retrieve(response.id).status in ("queued", "in_progress"):
                    time.sleep(0.05)
                with client.responses.connect() as connection:
                    connection.response.create(**ask)
                    next(
                        event
                        for event in connection
                        if event.type in ("response.completed", "response.incomplete")
                    )
            server.process.terminate()
            log = [json.loads(line) for line in server.process.communicate()[1].splitlines()]
        yield Traced(collector, log, response.id)


def test_the_span_of_a_request_is_below_the_clients_span_and_has_figures(traced: Traced) -> None:
    span = traced.span("POST /v1/chat/completions")

    assert (span.trace_id, span.parent_id, span.kind) == (TRACE, PARENT, 2)  # 2: of a server
    expected = {
        "http.request.method": "POST",
        "http.route": "/v1/chat/completions",
        "http.response.status_code": 200,
        "gen_ai.request.model": "ouzel-demo",
        "gen_ai.request.max_tokens": 8,
        "gen_ai.request.id": "mine",
        "gen_ai.usage.output_tokens": 8,
    }
    assert expected.items() <= span.attributes.items()
    assert "gen_ai.latency.time_to_first_token" in span.attributes
    assert span.resource["service.name"] == "ouzel"
    assert traced.collector.paths == {"/v1/traces"}


def test_the_time_of_a_request_is_queue_prefill_and_decode(traced: Traced) -> None:
    span = traced.span("POST /v1/chat/completions")
    queue, prefill, decode = phases = traced.collector.below(span)

    assert [phase.name for phase in phases] == PHASES
    assert span.start_ns <= queue.start_ns <= queue.end_ns == prefill.start_ns
    assert prefill.start_ns < prefill.end_ns == decode.start_ns < decode.end_ns <= span.end_ns


def test_the_log_names_the_trace(traced: Traced) -> None:
    span = traced.span("POST /v1/chat/completions")
    [line] = [line for line in traced.log if line.get("request_id") == "mine"]

    assert (line["trace_id"], line["span_id"]) == (TRACE, span.span_id)


def test_a_response_in_the_background_has_its_phases_below_a_span_of_its_own(
    traced: Traced,
) -> None:
    response = traced.span("response")
    request = traced.span("POST /v1/responses")

    assert response.parent_id == request.span_id
    assert response.attributes["gen_ai.response.id"] == traced.response_id
    assert [phase.name for phase in traced.collector.below(response)] == PHASES
    assert "gen_ai.usage.output_tokens" not in request.attributes


def test_a_request_of_a_websocket_has_a_span_below_the_connections(traced: Traced) -> None:
    connection = traced.span("GET /v1/responses")
    [request] = traced.collector.below(connection)

    assert request.name == "response.create"
    assert request.attributes["gen_ai.operation.name"] == "chat"
    assert [phase.name for phase in traced.collector.below(request)] == PHASES


def test_errors_are_traced_and_scrapes_and_unsampled_requests_are_not(
    traced: Traced,
) -> None:
    refused = traced.span("GET /v1/models/{name}")

    assert refused.attributes["http.response.status_code"] == 404
    assert not refused.is_error, "it is the client's"
    routes = {span.attributes.get("http.route") for span in traced.collector.spans}
    assert routes.isdisjoint({"/health", "/metrics", "/v1/models"})


def test_without_the_extra_the_option_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)  # Python's mark of a missing module
    for name in [
        name
        for name in sys.modules
        if name.startswith(("opentelemetry.sdk.", "ouzel.observability.traces"))
    ]:
        monkeypatch.delitem(sys.modules, name)

    status = main(["serve", "--otlp-traces-endpoint", "http://127.0.0.1:4318"])

    assert status == 2
    assert (
        "--otlp-traces-endpoint: needs the extra otel: uv sync --no-dev --extra otel"
        in capsys.readouterr().err
    )
