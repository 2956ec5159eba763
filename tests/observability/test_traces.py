"""Traces work with any header of a client and without a collector."""

import logging
import socket
import time
from collections.abc import Iterator

import pytest

from ouzel.observability.traces import Traces
from tests.api.requests import wait_until

SAMPLED = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[Traces]:
    """Yields traces whose collector does not exist."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")  # milliseconds
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")  # seconds, with all tries
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        traces = Traces(f"http://127.0.0.1:{nobody.getsockname()[1]}/v1/traces", "1")
        yield traces
        traces.close()


def test_a_collector_that_is_not_there_is_complained_of_once(
    traces: Traces, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="ouzel")
    for _ in range(3000):  # more than the SDK keeps
        traces.begin_request([(b"traceparent", SAMPLED)], time.perf_counter()).end({})
    wait_until(lambda: "traces: " in caplog.text)
    traces.begin_request([], time.perf_counter()).end({})
    traces.close()

    ours = [record.name for record in caplog.records if record.name.startswith("ouzel")]
    assert ours == ["ouzel.observability.traces"]
    assert not logging.getLogger("opentelemetry").propagate, (
        "caplog has them all the same, a server's log has not"
    )


@pytest.mark.parametrize(
    "headers",
    [
        [(b"traceparent", b"")],
        [(b"traceparent", b"\xff\xfe")],
        [(b"traceparent", SAMPLED), (b"traceparent", SAMPLED)],
        [(b"traceparent", SAMPLED.replace(b"0af7651916cd43dd8448eb211c80319c", b"0" * 32))],
        [(b"tracestate", b"=" * 5000), (b"baggage", b"a=%zz,,;" * 5000)],
    ],
)
def test_a_context_that_cannot_be_read_is_as_none_and_nothing_of_it_is_logged(
    traces: Traces, caplog: pytest.LogCaptureFixture, headers: list[tuple[bytes, bytes]]
) -> None:
    span = traces.begin_request(headers, time.perf_counter())

    assert span.trace_id not in (SAMPLED[3:35].decode(), "0" * 32)
    assert caplog.text == ""
