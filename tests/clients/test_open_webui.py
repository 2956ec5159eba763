"""Open WebUI: its server, installed without torch, gets the requests that its page sends."""

from collections.abc import Iterator

import httpx
import pytest

from tests.clients.clients import Clients, find_port, packages

pytestmark = [
    pytest.mark.serves,
    pytest.mark.release("Open WebUI, which takes long to install and to start"),
]
HELLO = [{"role": "user", "content": "Hello!"}]


@pytest.fixture
def webui(clients: Clients) -> Iterator[httpx.Client]:
    port = find_port()
    environment = {
        "DATA_DIR": str(clients.home / "data"),
        "OPENAI_API_BASE_URL": clients.server.url,
        "OPENAI_API_KEY": "none",
        "OLLAMA_BASE_URL": clients.server.root,
        "WEBUI_AUTH": "False",
        "WEBUI_SECRET_KEY": "secret",
        "OFFLINE_MODE": "True",
        "HF_HUB_OFFLINE": "1",
        "RAG_EMBEDDING_ENGINE": "openai",  # Open WebUI's own embedding engine needs torch
    }
    command = (
        packages("open-webui") / "bin" / "open-webui",
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    )
    root = f"http://127.0.0.1:{port}"
    with (
        clients.background(*command, environment=environment, ready=f"{root}/health"),
        httpx.Client(base_url=root, timeout=None, trust_env=False) as http,
    ):
        account = (
            http.post("/api/v1/auths/signin", json={"email": "", "password": ""})
            .raise_for_status()
            .json()
        )
        http.headers["Authorization"] = f"Bearer {account['token']}"
        yield http


def test_open_webui_chats_over_the_apis_of_openai_and_ollama(
    clients: Clients, webui: httpx.Client
) -> None:
    with clients.accepted(
        "Open WebUI", "/v1/models", "/v1/chat/completions", "/api/tags", "/api/chat"
    ):
        listed = webui.get("/api/models").raise_for_status().json()["data"]
        answers = [
            webui.post(
                path, json={"model": model, "messages": HELLO, "stream": stream}
            ).raise_for_status()
            for path, model in (
                ("/api/chat/completions", "ouzel"),
                ("/ollama/api/chat", "ouzel:latest"),
            )
            for stream in (False, True)
        ]

    assert {"ouzel", "ouzel:latest"} <= {model["id"] for model in listed}
    whole, streamed, of_ollama, streamed_of_ollama = answers
    assert whole.json()["choices"][0]["message"]["content"] == "Hello! How can I help you?"
    assert streamed.text.rstrip().endswith("data: [DONE]")
    assert of_ollama.json()["message"]["content"] == "Hello! How can I help you?"
    assert '"done":true' in streamed_of_ollama.text
