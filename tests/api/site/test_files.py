"""Files of the playground are compressed for clients that accept it, and each coding has a tag."""

import gzip
from collections.abc import Iterator

import httpx
import pytest

from ouzel.api.site.worker import list_shell_files
from ouzel.config import ServerConfig
from ouzel.playground import DIRECTORY, file_names
from tests.api.server_setup import ALIAS, MODEL
from tests.api.serving import running_server

HTML = {"accept": "text/html"}


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with running_server() as server, server.client() as http:
        del http.headers["accept-encoding"]
        yield http


def _read_raw(http: httpx.Client, path: str, coding: str) -> tuple[httpx.Headers, bytes]:
    with http.stream("GET", path, headers=HTML | {"accept-encoding": coding}) as response:
        return response.headers, b"".join(response.iter_raw())


@pytest.mark.parametrize("path", ["/", "/playground/modules/main.js", "/playground/worker.js"])
def test_a_file_is_compressed_for_clients_that_accept_it(http: httpx.Client, path: str) -> None:
    plain_headers, plain = _read_raw(http, path, "identity")
    headers, compressed = _read_raw(http, path, "br;q=1.0, gzip;q=0.8")
    assert gzip.decompress(compressed) == plain
    assert len(compressed) < len(plain)
    assert headers["content-length"] == str(len(compressed))
    assert headers["content-encoding"] == "gzip" and "content-encoding" not in plain_headers
    assert "accept-encoding" in headers["vary"] and "accept-encoding" in plain_headers["vary"]
    assert headers["etag"] != plain_headers["etag"]


@pytest.mark.parametrize("coding", ["", "identity", "gzip;q=0", "GZIP;q=0.000", "br", "gzipped"])
def test_a_file_stays_as_it_is_for_other_clients(http: httpx.Client, coding: str) -> None:
    headers, content = _read_raw(http, "/playground/modules/main.js", coding)
    assert "content-encoding" not in headers
    assert content == (DIRECTORY / "modules" / "main.js").read_bytes()


def test_a_tag_is_right_for_its_own_coding_only(http: httpx.Client) -> None:
    path = "/playground/modules/main.js"
    plain = http.get(path).headers["etag"]
    compressed = http.get(path, headers={"accept-encoding": "gzip"}).headers["etag"]

    def ask(tag: str, coding: str) -> int:
        headers = {"if-none-match": tag, "accept-encoding": coding}
        return http.get(path, headers=headers).status_code

    assert [ask(plain, ""), ask(compressed, "gzip"), ask(f"W/{compressed}", "gzip")] == [304] * 3
    assert [ask(plain, "gzip"), ask(compressed, "")] == [200, 200]


def test_a_file_that_would_not_shrink_is_sent_as_it_is(http: httpx.Client) -> None:
    headers, _ = _read_raw(http, "/playground/icons/192.png", "gzip")
    assert "content-encoding" not in headers


def test_json_about_the_server_has_the_policy_of_the_page(http: httpx.Client) -> None:
    page, json = http.get("/", headers=HTML).headers, http.get("/").headers
    assert json["content-type"] == "application/json"
    for name in ("content-security-policy", "x-content-type-options", "referrer-policy", "vary"):
        wanted = page[name].removesuffix(", accept-encoding")
        assert json[name] == wanted


def test_a_server_without_playground_sends_the_same_headers_with_json() -> None:
    with running_server(config=ServerConfig(playground=False)) as server, server.client() as http:
        headers = http.get("/").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_json_about_the_server_is_in_the_openapi_document(http: httpx.Client) -> None:
    document = http.get("/openapi.json").json()
    schema = document["paths"]["/"]["get"]["responses"]["200"]["content"]["application/json"]
    name = schema["schema"]["$ref"].rpartition("/")[2]
    assert set(http.get("/").json()) == set(document["components"]["schemas"][name]["properties"])


def test_the_worker_keeps_files_that_exist(http: httpx.Client) -> None:
    names = list_shell_files()
    assert {"modules/main.js", "styles/base.css", "icon.svg"} <= set(names) <= set(file_names())
    assert not any("figures.css" in name or name.startswith("texts/") for name in names)


def test_the_index_names_demo_models_by_fact(http: httpx.Client) -> None:
    assert http.get("/").json()["demo_models"] == []
    with running_server(is_demo=True) as server, server.client() as demo:
        assert demo.get("/").json()["demo_models"] == [MODEL, ALIAS]


@pytest.mark.parametrize(
    "path",
    ["/", "/about", "/v1/models", "/nothing", "/playground/icon.svg", "/playground/preview.html"],
)
def test_each_document_asks_for_a_process_of_its_own(http: httpx.Client, path: str) -> None:
    name = "origin-agent-cluster"
    assert http.get(path, headers=HTML).headers.get_list(name) == ["?1"]
    for other in ({"accept": "application/json"}, HTML | {"sec-fetch-dest": "iframe"}):
        assert name not in http.get(path, headers=other).headers


def test_a_server_without_playground_asks_for_no_process() -> None:
    with running_server(config=ServerConfig(playground=False)) as server, server.client() as http:
        assert "origin-agent-cluster" not in http.get("/about", headers=HTML).headers
