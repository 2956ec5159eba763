"""Metrics describe responses, the process and the build; log lines name the client and the key."""

import logging
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from ouzel import __version__
from ouzel.config import ServerConfig
from ouzel.observability import process_metrics
from tests.api.requests import chat, wait_until
from tests.api.serving import RunningServer, running_server

KEYS = ("sk-first", "sk-second")


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningServer]:
    with running_server(config=ServerConfig(api_key=KEYS, open_metrics=True)) as server:
        yield server


@pytest.fixture
def http(guarded: RunningServer) -> Iterator[httpx.Client]:
    with guarded.client() as client:
        client.headers["authorization"] = f"Bearer {KEYS[0]}"
        yield client


def responses(http: httpx.Client) -> dict[tuple[str, str], float]:
    """Returns the numbers of responses by path and code."""
    families = text_string_to_metric_families(http.get("/metrics").text)
    [family] = [family for family in families if family.name == "ouzel_http_responses"]
    return {
        (sample.labels["path"], sample.labels["code"]): sample.value for sample in family.samples
    }


def values(http: httpx.Client) -> dict[str, float]:
    """Returns the values of metrics without labels."""
    families = text_string_to_metric_families(http.get("/metrics").text)
    return {
        sample.name: sample.value
        for family in families
        for sample in family.samples
        if not sample.labels
    }


@pytest.mark.parametrize(
    ("method", "path", "body", "counted"),
    [
        ("POST", "/v1/chat/completions", chat("Hi"), ("/v1/chat/completions", 200)),
        ("POST", "/v1/chat/completions", chat("Hi", n=0), ("/v1/chat/completions", 400)),
        ("POST", "/chat/completions", {}, ("/v1/chat/completions", 400)),
        ("GET", "/v1/models/one", None, ("/v1/models/{name}", 404)),
        ("GET", "/v1/models/two", None, ("/v1/models/{name}", 404)),
        ("PUT", "/v1/models", None, ("/v1/models", 405)),
        ("GET", "/nowhere", None, ("unknown", 404)),
        ("GET", '/no"where\\', None, ("unknown", 404)),
        ("GET", "/playground/modules/main.js", None, ("/playground/{file}", 200)),
    ],
)
def test_responses_are_counted_by_operation_and_code(
    http: httpx.Client, method: str, path: str, body: object, counted: tuple[str, int]
) -> None:
    key = (counted[0], str(counted[1]))
    before = responses(http).get(key, 0)

    assert http.request(method, path, json=body).status_code == counted[1]

    wait_until(lambda: responses(http).get(key) == before + 1)


def test_a_refused_key_is_counted_at_the_operation(http: httpx.Client) -> None:
    for path in ("/v1/responses/resp_1", "/v1/responses/resp_2"):
        assert http.get(path, headers={"authorization": "Bearer wrong"}).status_code == 401

    wait_until(lambda: responses(http).get(("/v1/responses/{response_id}", "401")) == 2)


def test_clients_cannot_make_series(http: httpx.Client) -> None:
    http.get("/a")
    wait_until(lambda: ("unknown", "404") in responses(http))
    known = responses(http).keys()

    for number in range(5):
        http.get(f"/{number}/x")

    wait_until(lambda: responses(http)[("unknown", "404")] >= 6)
    assert responses(http).keys() == known


def test_the_process_has_the_usual_names(http: httpx.Client) -> None:
    found = values(http)

    assert found["process_cpu_seconds_total"] > 0
    assert found["process_virtual_memory_bytes"] > found["process_resident_memory_bytes"] > 2**20
    assert 0 < found["process_open_fds"] < found["process_max_fds"]
    boot_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    after_boot_s = float(
        Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    ) / os.sysconf("SC_CLK_TCK")
    assert abs(found["process_start_time_seconds"] - (boot_s + after_boot_s)) < 5


def test_a_sandbox_may_hide_files_of_proc(tmp_path: Path) -> None:
    """On Android and in some sandboxes, /proc/stat cannot be read, or no limits are listed."""
    own = tmp_path / "self"
    (own / "fd").mkdir(parents=True)
    (own / "stat").write_text(f"1 (a) b) R {' '.join(map(str, range(4, 53)))}")
    (own / "limits").write_text("")
    assert "process_cpu_seconds_total " in process_metrics(tmp_path)
    assert "process_open_fds" not in process_metrics(tmp_path)
    (tmp_path / "stat").write_text("btime 1000\n")
    assert "process_open_fds 0" in process_metrics(
        tmp_path
    ) and "process_max_fds +Inf" in process_metrics(tmp_path)


def test_the_build_is_a_metric(http: httpx.Client) -> None:
    [line] = re.findall(r"^ouzel_build_info\{.*$", http.get("/metrics").text, re.M)

    assert f'version="{__version__}"' in line
    assert line.endswith(" 1")


def read_line(caplog: pytest.LogCaptureFixture, path: str) -> str:
    wait_until(lambda: path in caplog.text)
    return next(line for record in caplog.records if path in (line := record.getMessage()))


def test_a_line_names_the_client_and_a_fingerprint_of_the_key(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel.api.http.request_log")
    http.get("/v1/models?", headers={"x-request-id": "a"})
    first = read_line(caplog, "/v1/models")
    caplog.clear()
    http.get("/v1/models", headers={"authorization": f"Bearer {KEYS[1]}"})
    second = read_line(caplog, "/v1/models")

    [one], [other] = (
        re.findall(r" client=127\.0\.0\.1 key=([0-9a-f]{8})$", line) for line in (first, second)
    )
    assert one != other
    assert KEYS[0] not in first


def test_a_proxy_on_this_machine_names_its_client(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel.api.http.request_log")
    http.get("/one", headers={"x-forwarded-for": "203.0.113.7"})
    http.get("/two", headers={"x-forwarded-for": "GET /v1/models 200"})
    # Python accepts any text as the zone of an address
    http.get("/three", headers={"x-forwarded-for": "fe80::1%eth0 key=0123abcd"})
    http.get("/four", headers={"x-forwarded-for": "FE80:0::1%eth0"})

    assert " client=203.0.113.7" in read_line(caplog, "/one")
    assert " client=invalid" in read_line(caplog, "/two")
    assert " client=fe80::1 " in f"{read_line(caplog, '/three')} " and "0123abcd" not in caplog.text
    assert " client=fe80::1 " in f"{read_line(caplog, '/four')} "


def test_files_of_the_playground_are_told_at_debug(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="ouzel.api.http.request_log")

    http.get("/playground/modules/main.js")
    http.get("/playground/none.js")

    read_line(caplog, "none.js")
    levels = {record.getMessage().split()[1]: record.levelname for record in caplog.records}
    assert levels == {"/playground/modules/main.js": "DEBUG", "/playground/none.js": "INFO"}
