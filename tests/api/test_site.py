"""The server describes itself at `/` and at the paths that vLLM's tools read."""

from collections.abc import Iterator
from html.parser import HTMLParser

import httpx
import pytest

from ouzel import __version__
from ouzel.config import ServerConfig
from tests.api.requests import chat, wait_until
from tests.api.server_setup import ALIAS, CHAT_TEMPLATE, MODEL
from tests.api.serving import RunningServer, running_server

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class Page(HTMLParser):
    """Collects the references and texts of a page; raises an error at a tag that is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in ("meta", "link"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx.Client]:
    config = ServerConfig(api_key=("sk-right",), root_path="/llm")
    with running_server(config=config, names=("<b>&", "x")) as server, server.client() as http:
        yield http


def test_a_browser_gets_a_page_that_loads_nothing(
    http: httpx.Client, server: RunningServer
) -> None:
    response = http.get("/about", headers=BROWSER)
    assert (response.status_code, response.headers["content-type"]) == (
        200,
        "text/html; charset=utf-8",
    )
    assert "default-src 'none'" in response.headers["content-security-policy"]
    page = Page(response.text)
    # the icon is empty, so that a browser asks for none
    assert page.references == ["data:,", "/openapi.json"]
    assert not {"script", "img", "iframe"} & set(page.tags)
    for shown in (MODEL, f"{server.url}/v1", "POST /v1/chat/completions", "4096"):
        assert shown in page.text


def test_others_get_json_and_head_nothing(http: httpx.Client, server: RunningServer) -> None:
    response = http.get("/")
    index = response.json()
    assert (index["server"], index["version"], index["models"]) == (
        "Ouzel",
        __version__,
        [MODEL, ALIAS],
    )
    assert index["base_urls"]["OpenAI"] == f"{server.url}/v1"
    assert index["needs_api_key"] is False
    head = http.head("/")
    assert (head.status_code, head.content) == (200, b"")
    assert http.get(index["openapi"]).json()["openapi"] == "3.1.0"


def test_the_page_needs_no_key_and_escapes_its_texts(guarded: httpx.Client) -> None:
    assert guarded.get("/llm/", headers=BROWSER).status_code == 200
    response = guarded.get("/llm/about", headers=BROWSER)
    page = Page(response.text)
    assert response.status_code == 200
    assert "<b>&" in page.text and "API key" in page.text and "/llm/v1" in page.text
    assert page.references == ["data:,", "/llm/openapi.json"]
    assert guarded.head("/").status_code == 200
    assert guarded.get("/tokenizer_info").status_code == 401


def test_a_strange_host_is_shown_as_text() -> None:
    with (
        running_server(config=ServerConfig(allowed_hosts=("*",))) as server,
        server.client() as http,
    ):
        response = http.get("/about", headers={**BROWSER, "host": "a&b'c"})
    assert "http://a&b'c/v1" in Page(response.text).text


@pytest.mark.parametrize("path", ["/version", "/v1/version", "/version/"])
def test_the_version_is_shown(http: httpx.Client, path: str) -> None:
    assert http.get(path).json() == {"version": __version__}


def test_the_load_counts_running_requests(server: RunningServer) -> None:
    def load(http: httpx.Client) -> int:
        num: int = http.get("/load").json()["server_load"]
        return num

    with server.client() as http:
        wait_until(lambda: load(http) == 0)
        with http.stream(
            "POST",
            "/v1/completions",
            json={"model": ALIAS, "prompt": "a", "max_tokens": 4000, "stream": True},
        ):
            assert load(http) == 1
        wait_until(lambda: load(http) == 0)
        assert http.post("/v1/chat/completions", json=chat("Hi")).status_code == 200


def test_the_tokenizer_is_described_as_its_configuration_does(http: httpx.Client) -> None:
    assert http.get("/tokenizer_info").json() == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": 4096,
        "chat_template": CHAT_TEMPLATE,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": None,
        "unk_token": None,
        "additional_special_tokens": ["<|im_start|>"],
        "add_bos_token": False,
        "add_eos_token": False,
    }


def test_a_remote_tokenizer_gets_its_files(http: httpx.Client) -> None:
    """Evaluation harnesses remove `/v1/...` from their base URL to find the tokenizer."""
    eos = http.get("/tokenizer_info").json()["eos_token"]
    tokenized = http.post(
        "/tokenize", json={"prompt": f"Hi{eos}", "add_special_tokens": False}
    ).json()
    assert tokenized["tokens"] == [72, 105, 257]
    assert (
        http.post("/detokenize", json={"tokens": tokenized["tokens"]}).json()["prompt"]
        == f"Hi{eos}"
    )
