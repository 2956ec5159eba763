"""A server with several models sends each request to the model that it names, in every API."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from ouzel.config import LimitsConfig, ServerConfig
from tests.api.requests import chat, sum_metric
from tests.api.server_setup import MODEL, ServerSetup
from tests.api.serving import RunningServer, running_server

ADMIN = {"authorization": "Bearer sk-admin"}
OTHER, PLAIN = "org/other", "plain"
SECOND = ServerSetup(names=(OTHER,), options={"max_model_len": 200})
THIRD = ServerSetup(names=(PLAIN,), has_chat_template=False)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    store_url = f"sqlite:///{tmp_path_factory.mktemp('store')}/store.sqlite3"
    config = ServerConfig(admin_api_key="sk-admin")
    with running_server(further=(SECOND, THIRD), config=config, store_url=store_url) as server:
        yield server


@pytest.fixture
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


def build_request(model: str | None, **fields: object) -> dict[str, Any]:
    return {**chat("Polly", **fields), "model": model}


@pytest.mark.parametrize("name", [MODEL, OTHER])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", chat("Polly")),
        ("/v3/chat/completions", chat("Polly")),
        ("/v1/completions", {"prompt": "Polly"}),
        ("/v1/responses", {"input": "Polly"}),
        ("/v1/messages", {**chat("Polly"), "max_tokens": 9}),
        ("/api/chat", {**chat("Polly"), "stream": False}),
        ("/api/generate", {"prompt": "Polly", "stream": False}),
    ],
)
def test_every_door_leads_to_the_model_that_is_named(
    http: httpx.Client, path: str, body: dict[str, Any], name: str
) -> None:
    response = http.post(path, json={**body, "model": name})

    assert response.status_code == 200, response.text
    assert response.json()["model"] == name


def test_a_request_without_a_name_is_for_the_first(http: httpx.Client) -> None:
    assert http.post("/v1/chat/completions", json=build_request(None)).json()["model"] == MODEL


def test_an_unknown_name_is_told_all_that_there_are(http: httpx.Client) -> None:
    response = http.post("/v1/chat/completions", json=build_request("nope"))

    assert response.status_code == 404
    assert (
        "this server has: "
        f"{', '.join(name['id'] for name in http.get('/v1/models').json()['data'])}"
        in response.text
    )


@pytest.mark.parametrize("model", [7, ["x"], {"a": 1}])
def test_a_name_that_is_no_text_is_refused_in_the_endpoints_words(
    http: httpx.Client, model: object
) -> None:
    response = http.post("/v1/chat/completions", json={**chat("Polly"), "model": model})

    assert (response.status_code, response.json()["error"]["param"]) == (400, "model")


def test_a_body_that_is_no_json_is_refused(http: httpx.Client) -> None:
    response = http.post("/v1/chat/completions", content=b'{"model":')

    assert response.status_code == 400


def test_each_model_has_limits_of_its_own(http: httpx.Client) -> None:
    long = chat("a" * 300, max_tokens=1)

    assert http.post("/v1/chat/completions", json={**long, "model": MODEL}).status_code == 200
    refused = http.post("/v1/chat/completions", json={**long, "model": OTHER})
    assert (refused.status_code, "200" in refused.text) == (400, True)


def test_a_model_without_a_template_refuses_chats_beside_one_that_takes_them(
    http: httpx.Client,
) -> None:
    assert http.post("/v1/chat/completions", json=build_request(PLAIN)).status_code == 400
    assert http.post("/v1/completions", json={"model": PLAIN, "prompt": "Polly"}).status_code == 200


@pytest.mark.parametrize(
    "path", ["/v1/models", "/api/tags", "/api/ps", "/v1/config", "/health", "/"]
)
def test_lists_have_all_models(http: httpx.Client, path: str) -> None:
    text = http.get(path).text

    assert all(name in text for name in (MODEL, OTHER, PLAIN))


def test_each_model_uses_its_own_tokenizer(http: httpx.Client) -> None:
    response = http.post("/tokenize", json={"model": OTHER, "prompt": "Polly"})

    assert response.json()["max_model_len"] == 200


def test_metrics_are_by_model_and_each_family_stands_once(http: httpx.Client) -> None:
    http.post("/v1/chat/completions", json=build_request(OTHER))
    lines = http.get("/metrics").text.splitlines()

    types = [line for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
    counted = [line for line in lines if line.startswith("ouzel_prompt_tokens_total{")]
    assert [name in line for name, line in zip((MODEL, OTHER, PLAIN), counted, strict=True)] == [
        True
    ] * 3


def test_a_conversation_may_go_on_with_another_model(http: httpx.Client) -> None:
    first = http.post("/v1/responses", json={"model": MODEL, "input": "Polly"}).json()
    second = http.post(
        "/v1/responses", json={"model": OTHER, "input": "Jack", "previous_response_id": first["id"]}
    ).json()

    assert (second["model"], second["status"]) == (OTHER, "completed")
    assert http.get(f"/v1/responses/{second['id']}").json()["model"] == OTHER


def test_each_message_of_a_websocket_names_its_model(server: RunningServer) -> None:
    models = []
    with connect(server.url.replace("http", "ws") + "/v1/responses") as socket:
        for name in (OTHER, MODEL):
            socket.send(f'{{"type": "response.create", "model": "{name}", "input": "Polly"}}')
            while '"response.completed"' not in (event := str(socket.recv())):
                pass
            models.append([each for each in (OTHER, MODEL) if f'"model":"{each}"' in event])

    assert models == [[OTHER], [MODEL]]


def test_lmi_names_a_model_beside_the_body(http: httpx.Client) -> None:
    attributes = {"x-amzn-sagemaker-custom-attributes": f"model_name={OTHER}"}

    long = chat("a" * 300, max_tokens=1)  # too long for the other model

    assert http.post("/invocations", json=long).status_code == 200
    assert http.post("/invocations", json=long, headers=attributes).status_code == 424
    assert http.post(f"/models/{OTHER}/invoke", json=long).status_code == 424
    assert http.post("/models/nope/invoke", json=long).status_code == 404


def test_a_full_model_refuses_and_the_others_do_not() -> None:
    limits = LimitsConfig(max_queued_requests=0)
    with (
        running_server(further=(ServerSetup(names=("b",)),), limits=limits) as server,
        server.client() as http,
    ):
        with server.model.engine.admit(server.model.engine.max_admitted):
            assert http.post("/v1/chat/completions", json=build_request(MODEL)).status_code == 429
            assert http.post("/v1/chat/completions", json=build_request("b")).status_code == 200
        text = http.get("/metrics").text

    refused = [
        line for line in text.splitlines() if line.startswith("ouzel_requests_refused_total{")
    ]
    assert [line.rsplit(" ", 1)[1] for line in refused] == ["1", "0"]


def test_metrics_of_one_model_are_as_before() -> None:
    with running_server() as server, server.client() as http:
        http.post("/v1/chat/completions", json=chat("Polly"))
        assert sum_metric(http.get("/metrics").text, "ouzel_num_requests_running") == 0
