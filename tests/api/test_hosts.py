"""A server answers only requests whose Host header has an allowed name."""

import socket

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.requests import read_error
from tests.api.serving import RunningServer, running_server
from tests.api.test_connections import read_refusal, send_and_receive


def read_status(http: httpx.Client, host: str) -> int:
    return http.get("/v1/models", headers={"host": host, "authorization": "Bearer sk"}).status_code


OWN = [
    "127.0.0.1",
    "127.0.0.1:80",
    "10.1.2.3:8000",
    "[::1]:80",
    "localhost",
    "LOCALHOST:1",
    "a.localhost",
    "localhost.",
    "[fe80::1%25eth0]:80",
    "host.docker.internal:8000",
]


@pytest.mark.parametrize("host", [*OWN, socket.gethostname()])
def test_addresses_and_own_names_are_answered(http: httpx.Client, host: str) -> None:
    assert read_status(http, host) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8000", "notlocalhost"],
)
def test_names_of_others_are_a_403_that_names_the_option(http: httpx.Client, host: str) -> None:
    response = http.get("/v1/models", headers={"host": host})
    assert response.status_code == 403
    error = read_error(response)
    assert host.partition(":")[0] in error["message"] and "--allowed-hosts" in error["message"]
    assert error["code"] == "host_not_allowed"


@pytest.mark.parametrize(
    "headers",
    [
        b"",
        b"Host: a\r\nHost: a\r\n",
        b"Host:\r\n",
        b"Host: a b\r\n",
        b"Host: a/b\r\n",
        b"Host: \xff\r\n",
        b"Host: a:b\r\n",
        b"Host: [::1%]\r\n",
        b"Host: [::1%a%b]\r\n",
    ],
)
def test_a_host_that_is_missing_repeated_or_malformed_is_a_400(
    server: RunningServer, headers: bytes
) -> None:
    answer = send_and_receive(
        server, b"GET /health HTTP/1.1\r\nConnection: close\r\n" + headers + b"\r\n"
    )
    assert "Host header" in read_refusal(answer, 400)["message"]


def test_spaces_after_a_host_are_no_part_of_it(server: RunningServer) -> None:
    answer = send_and_receive(
        server, b"GET /health HTTP/1.1\r\nConnection: close\r\nHost: localhost:80 \t \r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_http_1_0_has_no_host(server: RunningServer) -> None:
    assert send_and_receive(server, b"GET /health HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_a_host_may_be_empty_where_every_name_is_allowed() -> None:
    with running_server(config=ServerConfig(allowed_hosts=("*",))) as server:
        for host in (b"Host:\r\n", b"Host: \t \r\n"):
            answer = send_and_receive(
                server, b"GET /health HTTP/1.1\r\nConnection: close\r\n" + host + b"\r\n"
            )
            assert answer.startswith(b"HTTP/1.1 200 ")


def test_hosts_that_have_passed_allow_no_others(http: httpx.Client) -> None:
    for number in range(100):
        assert read_status(http, f"a{number}.localhost") == 200
        assert read_status(http, f"a{number}.evil.example") == 403


@pytest.mark.parametrize(
    ("config", "is_allowed"),
    [
        (ServerConfig(allowed_hosts=("llm.Example.org",)), True),
        (ServerConfig(allowed_hosts=("*",)), True),
        (ServerConfig(host="0.0.0.0"), True),
        (ServerConfig(api_key=("sk",)), True),
        (ServerConfig(uds="/run/ouzel.sock"), True),
        (ServerConfig(host="localhost"), False),
        (ServerConfig(host="::1"), False),
        (ServerConfig(api_key=("sk",), allowed_hosts=("other",)), False),
        (ServerConfig(host="0.0.0.0", allowed_hosts=("other",)), False),
    ],
    ids=str,
)
def test_the_check_of_hosts_depends_on_other_protection(
    config: ServerConfig, is_allowed: bool
) -> None:
    with running_server(config=config) as server, server.client() as http:
        assert read_status(http, "llm.example.org:8000") == (200 if is_allowed else 403)
        assert read_status(http, "127.0.0.1") == 200
