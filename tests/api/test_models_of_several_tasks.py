"""A server with models for ranking, embeddings and chats sends each request to a fitting model."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from ouzel.checkpoint.sentence_files import SentenceFiles
from ouzel.config import ServerConfig
from tests.api.requests import chat as build_chat
from tests.api.server_setup import ServerSetup
from tests.api.serving import RunningServer, running_server

RANKER, EMBEDDER, CHAT = "ranker", "embedder", "talker"
FILES = SentenceFiles(modes=("mean",), activation="identity")
FURTHER = (
    ServerSetup(
        names=(EMBEDDER,),
        engine_factory="tests.engine.vector_runner:create_embedder",
        has_chat_template=False,
        sentences=FILES,
    ),
    ServerSetup(names=(CHAT, "talker-2")),
    ServerSetup(names=("further",)),
)
MESSAGES = {"messages": build_chat("Polly")["messages"]}
CHATS = [
    ("/v1/chat/completions", MESSAGES),
    ("/v1/completions", {"prompt": "Polly"}),
    ("/v1/responses", {"input": "Polly"}),
    ("/v1/messages", {**MESSAGES, "max_tokens": 9}),
]
OTHERS_OF_CHATS = [
    ("/v1/chat/completions/render", MESSAGES),
    ("/v1/completions/render", {"prompt": "Polly"}),
    ("/v1/responses/input_tokens", {"input": "Polly"}),
    ("/v1/messages/count_tokens", MESSAGES),
]
EMBEDDINGS = [
    ("/v1/embeddings", {"input": "Polly"}),
    ("/v3/embeddings", {"input": "Polly"}),
    ("/api/embed", {"input": "Polly"}),
]
RANKINGS = [
    ("/v1/rerank", {"query": "a", "documents": ["b"]}),
    ("/rerank", {"query": "a", "documents": ["b"]}),
    ("/v2/rerank", {"query": "a", "documents": ["b"]}),
    ("/v1/score", {"text_1": "a", "text_2": "b"}),
]
Body = dict[str, Any]


def start_server(**options: Any) -> AbstractContextManager[RunningServer]:
    return running_server(
        names=(RANKER,),
        engine_factory="tests.engine.vector_runner:create_scorer",
        further=FURTHER,
        has_chat_template=False,
        sentences=FILES,
        **options,
    )


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with start_server() as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as http:
        yield http


def post_json(http: httpx.Client, path: str, body: Body) -> Any:
    response = http.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def read_refusal(http: httpx.Client, path: str, body: Body) -> str:
    """Returns the message of a 400, in the form of the path's API."""
    response = http.post(path, json=body)
    assert response.status_code == 400, response.text
    answer = response.json()
    error = answer.get("error", answer)
    return str(error if isinstance(error, str) else error["message"])


@pytest.mark.parametrize(
    ("path", "body", "model"),
    [
        *((path, body, CHAT) for path, body in CHATS),
        *((path, body, EMBEDDER) for path, body in EMBEDDINGS),
        *((path, body, RANKER) for path, body in RANKINGS),
    ],
)
def test_without_a_name_the_first_model_for_the_task_answers(
    http: httpx.Client, path: str, body: Body, model: str
) -> None:
    answers = [post_json(http, path, {**body, **name}) for name in ({}, {"model": None})]
    if path != "/api/embed":  # the answer has the name in the request
        answers.append(post_json(http, path, {**body, "model": ""}))

    assert {answer["model"] for answer in answers} == {model}


@pytest.mark.parametrize(("path", "body"), OTHERS_OF_CHATS)
def test_without_a_name_a_model_that_generates_counts_and_renders(
    http: httpx.Client, path: str, body: Body
) -> None:
    answer = http.post(path, json=body).text

    assert '_tokens":' in answer or f'"model":"{CHAT}"' in answer


def test_cohere_gets_the_embedder_without_a_name(http: httpx.Client) -> None:
    body = {"texts": ["a"], "input_type": "classification", "embedding_types": ["float"]}

    assert post_json(http, "/v2/embed", body)["embeddings"]["float"]


def test_a_message_of_a_websocket_gets_a_model_that_generates(server: RunningServer) -> None:
    with connect(server.url.replace("http", "ws") + "/v1/responses") as socket:
        socket.send('{"type": "response.create", "input": "Polly"}')
        created = str(socket.recv())
        while '"response.completed"' not in str(socket.recv()):
            pass
        socket.send(f'{{"type": "response.create", "model": "{RANKER}", "input": "Polly"}}')
        refused = str(socket.recv())

    assert f'"model":"{CHAT}"' in created
    assert "this server's models for text: talker, further" in refused


@pytest.mark.parametrize(("path", "body"), [*CHATS, *OTHERS_OF_CHATS])
@pytest.mark.parametrize(
    ("model", "does"), [(EMBEDDER, "makes embeddings"), (RANKER, "scores pairs of texts")]
)
def test_a_chat_to_another_model_is_told_the_models_that_generate(
    http: httpx.Client, path: str, body: Body, model: str, does: str
) -> None:
    assert read_refusal(http, path, {**body, "model": model}) == (
        f"the model '{model}' {does} and makes no text; "
        "this server's models for text: talker, further"
    )


@pytest.mark.parametrize(("path", "body"), EMBEDDINGS)
def test_embeddings_of_another_model_are_told_the_embedder(
    http: httpx.Client, path: str, body: Body
) -> None:
    assert read_refusal(http, path, {**body, "model": "further"}) == (
        "the model 'further' generates text and makes no embeddings; "
        "this server's models for embeddings: embedder"
    )


@pytest.mark.parametrize(("path", "body"), RANKINGS)
def test_an_embedder_ranks_by_name_and_a_refusal_names_the_ranker_first(
    http: httpx.Client, path: str, body: Body
) -> None:
    assert post_json(http, path, {**body, "model": EMBEDDER})["model"] == EMBEDDER
    assert read_refusal(http, path, {**body, "model": CHAT}).endswith(
        "the model 'talker' generates text and makes no scores; "
        "this server's models for scores: ranker, embedder"
    )


def test_an_unreadable_body_is_refused_by_a_model_for_the_task(http: httpx.Client) -> None:
    response = http.post("/v1/embeddings", content=b'{"model":')

    assert response.status_code == 400
    assert "JSON" in response.text


def test_without_any_model_for_the_task_the_endpoint_says_what_would_help() -> None:
    with running_server(further=(ServerSetup(names=("b",)),)) as server, server.client() as http:
        message = read_refusal(http, "/v1/embeddings", {"input": "a"})

    assert message.endswith(
        "serve another model, or this one with --task embed if it supports both"
    )


def test_ovms_refusals_name_the_right_models_too() -> None:
    config = ServerConfig(profile="ovms")
    with start_server(config=config) as server, server.client() as http:
        refusals = [
            http.post(path, json={**body, "model": model}).text
            for path, body, model in (
                ("/v3/chat/completions", MESSAGES, EMBEDDER),
                ("/v3/embeddings", {"input": "Polly"}, CHAT),
                ("/v3/rerank", {"query": "a", "documents": ["b"]}, CHAT),
            )
        ]

    for refusal, names in zip(
        refusals, ("talker, further", EMBEDDER, "ranker, embedder"), strict=True
    ):
        assert f": {names}" in refusal


def test_a_request_waits_for_the_first_model_for_its_task_only() -> None:
    """While a model is loaded, requests without a name that it may answer are to come again."""
    paths = {"/v1/embeddings": {"input": "a"}, "/v1/chat/completions": MESSAGES}
    with start_server() as server, server.client() as http:

        def list_statuses(loading: str) -> list[int]:
            with server.catalogue.coming([loading]):
                return [http.post(path, json=body).status_code for path, body in paths.items()]

        server.catalogue.arrange([RANKER, "new", EMBEDDER, CHAT, "further", "last"])
        statuses = [list_statuses("new"), list_statuses("last")]
        server.catalogue.remove(server.catalogue.find(EMBEDDER))
        statuses.append(list_statuses(EMBEDDER))
        server.catalogue.remove(server.catalogue.find(CHAT))
        statuses.append(list_statuses(CHAT))

    assert statuses == [[503, 503], [200, 200], [503, 200], [400, 503]]
