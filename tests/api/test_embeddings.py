"""POST /embeddings makes vectors, refuses bad inputs, and frees the places of lost clients."""

import base64
import logging
import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import openai
import pytest

from ouzel.checkpoint.sentence_files import SentenceFiles
from tests.api.server_setup import ALIAS, MODEL
from tests.api.serving import RunningServer, running_server
from tests.engine import vector_runner
from tests.engine.vector_runner import NOT_FINITE_TOKEN_ID, VECTOR_SIZE

FILES = SentenceFiles(
    modes=("mean",),
    prompts={"query": "ask: ", "document": ""},
    is_matryoshka=True,
    normalises=False,
)


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(
        engine_factory="tests.engine.vector_runner:create_embedder",
        has_chat_template=False,
        sentences=FILES,
    ) as server:
        yield server


@pytest.fixture(scope="module")
def http(server: RunningServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def vectors(http: httpx.Client, **body: object) -> list[list[float]]:
    response = http.post("/v1/embeddings", json=body)
    assert response.status_code == 200, response.text
    return [entry["embedding"] for entry in response.json()["data"]]


def read_error(http: httpx.Client, path: str = "/v1/embeddings", **body: object) -> tuple[int, str]:
    response = http.post(path, json=body)
    return response.status_code, response.json()["error"]["message"]


def make_vector(text: str) -> list[float]:
    """Returns the vector that the fake runner makes of a text's bytes, which are its tokens."""
    return [sum(text.encode()), len(text), text.encode()[0], len(text)]


def test_texts_come_back_in_their_order(client: openai.OpenAI) -> None:
    # the client requests base64
    answer = client.embeddings.create(model=MODEL, input=["b", "ccc", "aa"])
    assert [entry.index for entry in answer.data] == [0, 1, 2]
    assert [entry.embedding for entry in answer.data] == [
        make_vector("b"),
        make_vector("ccc"),
        make_vector("aa"),
    ]
    assert (answer.object, answer.model) == ("list", MODEL)
    assert answer.usage.model_dump() == {"prompt_tokens": 6, "total_tokens": 6}


def test_base64_is_little_endian_float32(http: httpx.Client) -> None:
    response = http.post("/v1/embeddings", json={"input": "ab", "encoding_format": "base64"})
    [entry] = response.json()["data"]
    assert list(
        struct.unpack(f"<{VECTOR_SIZE}f", base64.b64decode(entry["embedding"]))
    ) == make_vector("ab")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ab", [make_vector("ab")]),
        (["ab"], [make_vector("ab")]),
        ([97, 98], [make_vector("ab")]),
        ([[97, 98], [99]], [make_vector("ab"), make_vector("c")]),
    ],
)
def test_an_input_is_a_text_or_tokens_or_several(
    http: httpx.Client, value: object, expected: list[object]
) -> None:
    assert vectors(http, input=value) == expected


@pytest.mark.parametrize("path", ["/v3/embeddings", "/v3/v1/embeddings"])
def test_embeddings_are_served_below_the_other_prefixes(http: httpx.Client, path: str) -> None:
    assert http.post(path, json={"input": "ab", "model": ALIAS, "user": "me"}).status_code == 200


def test_token_ids_of_another_tokenizer_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with (
        running_server(
            engine_factory="tests.engine.vector_runner:create_embedder",
            has_chat_template=False,
            sentences=FILES,
        ) as server,
        server.client() as http,
        caplog.at_level(logging.WARNING, logger="ouzel"),
    ):
        vectors(
            http,
            input=[
                list("été au lait".encode()),
                [256, *b"short", 257],
                list("é".encode())[1:] + [97] * 9,
            ],
        )
        assert not caplog.messages
        for _ in range(2):
            vectors(http, input=[[97] * 4 + [200, 201] + [97] * 4, [97] * 9])
    assert [message[:50] for message in caplog.messages] == [
        "an input of token ids does not match this model's "
    ]


def test_fewer_dimensions_are_the_first_ones(http: httpx.Client) -> None:
    assert vectors(http, input="ab", dimensions=2) == [make_vector("ab")[:2]]
    [unit] = vectors(http, input="ab", dimensions=2, normalize=True)
    assert unit == pytest.approx([195 / np.hypot(195, 2), 2 / np.hypot(195, 2)])


def test_infinitys_clients_leave_open_the_dimensions_and_the_model(http: httpx.Client) -> None:
    response = http.post(
        "/embeddings", json={"input": "ab", "dimensions": 0, "model": "default/not-specified"}
    )
    assert response.json()["data"][0]["embedding"] == make_vector("ab")


def test_inputs_of_infinitys_clients_are_texts(http: httpx.Client) -> None:
    """Without the refusal, the address of an image would be embedded as a text."""
    assert vectors(http, input="ab", modality="text") == [make_vector("ab")]
    response = http.post("/embeddings", json={"input": "http://x/y.png", "modality": "image"})
    assert response.status_code == 400
    assert (
        response.json()["error"]["message"]
        == 'modality is not supported by this server (only "text"), given "image"'
    )


def test_a_prompt_stands_before_the_text(http: httpx.Client) -> None:
    assert vectors(http, input="ab", prompt_name="query") == [make_vector("ask: ab")]
    assert vectors(http, input=[97], prompt_name="query") == [make_vector("a")]


@pytest.mark.parametrize(
    "field", [{"truncate_prompt_tokens": -1}, {"truncate": True}, {"truncate_prompt_tokens": 64}]
)
def test_a_long_text_is_cut_where_that_is_asked_for(
    http: httpx.Client, field: dict[str, object]
) -> None:
    for value in ("a" * 5000, [97] * 70):
        assert vectors(http, input=value, **field) == [make_vector("a" * 64)]


def test_as_many_as_openai_takes_fit_in_one_request(http: httpx.Client) -> None:
    texts = [f"{number}" for number in range(2048)]
    assert vectors(http, input=texts) == [make_vector(text) for text in texts]


def test_64_at_once_of_all_lengths(http: httpx.Client) -> None:
    texts = [["x" * (1 + (number * 7 + step) % 60) for step in range(9)] for number in range(64)]
    with ThreadPoolExecutor(64) as threads:
        answers = list(threads.map(lambda each: vectors(http, input=each), texts))
    assert answers == [[make_vector(text) for text in each] for each in texts]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "input is required, or messages"),
        ({"input": []}, "input must have a length >= 1, given []"),
        ({"input": ""}, "input must have at least one token, given none"),
        ({"input": ["a", ""]}, "input[1] must have at least one token, given none"),
        ({"input": ["a", 3]}, "input[1] must be a text, as input[0] is, given 3"),
        ({"input": [97, "a"]}, 'input must be a non-empty list of token ids, given [97,"a"]'),
        ({"input": [[97], []]}, "input[1] must be a non-empty list of token ids, given []"),
        ({"input": [97, 260]}, "input[1] must be a token id from 0 to 259, given 260"),
        ({"input": ["a"] * 2049}, "input must have 1 to 2048 entries, given 2049"),
        ({"input": "a", "dimensions": 5}, "dimensions must be <= 4, given 5"),
        ({"input": "a", "output_dimension": 5}, "output_dimension must be <= 4, given 5"),
        (
            {"input": "a", "input_type": "query"},
            'input_type is not supported by this server (use prompt_name), given "query"',
        ),
        ({"prompt": "a"}, 'prompt is not supported by this server (use input), given "a"'),
        ({"input": "a", "dimensions": -1}, "dimensions must be >= 0, given -1"),
        (
            {"input": "a", "encoding_format": "int8"},
            'encoding_format must be one of "base64", "float", given "int8"',
        ),
        (
            {"input": "a", "prompt_name": "x"},
            "prompt_name must be one of the model's prompts (query, document), given 'x'",
        ),
        (
            {"input": "a", "truncate_prompt_tokens": 65},
            "truncate_prompt_tokens must be from 1 to 64, or -1, given 65",
        ),
    ],
)
def test_invalid_fields_are_refused_by_name(
    http: httpx.Client, body: dict[str, object], message: str
) -> None:
    assert http.post("/v1/embeddings", json=body).json()["error"]["message"] == message


def test_a_vector_that_is_not_finite_is_an_error_and_no_null(http: httpx.Client) -> None:
    response = http.post("/v1/embeddings", json={"input": [[97], [NOT_FINITE_TOKEN_ID]]})
    assert (response.status_code, response.json()["error"]["code"]) == (500, "engine_failed")
    assert vectors(http, input="ab") == [make_vector("ab")]


@pytest.mark.parametrize("text", ["a" * 65, "a" * 100_000])
def test_a_text_that_is_too_long_is_refused_as_clients_know_it(
    http: httpx.Client, text: str
) -> None:
    response = http.post("/v1/embeddings", json={"input": ["a", text]})
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (
        400,
        "context_length_exceeded",
        "input[1]",
    )
    assert error["message"].startswith("This model's maximum context length is 64 tokens.")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
        ("/v1/completions", {"prompt": "a"}),
        ("/v1/responses", {"input": "a"}),
        ("/v3/chat/completions", {"messages": [{"role": "user", "content": "a"}], "stream": True}),
        ("/invocations", {"messages": [{"role": "user", "content": "a"}]}),
        ("/invocations", {"prompt": "a"}),
        ("/api/chat", {"messages": [{"role": "user", "content": "a"}]}),
        ("/api/generate", {"prompt": "a"}),
        (
            "/v1/messages",
            {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1, "model": MODEL},
        ),
    ],
)
def test_a_generating_request_is_told_the_endpoint_to_use(
    http: httpx.Client, path: str, body: dict[str, object]
) -> None:
    response = http.post(path, json=body)
    assert response.status_code in (400, 424)
    assert "makes embeddings and no text: send them to /v1/embeddings" in response.text


def test_a_model_that_generates_says_how_it_could() -> None:
    with running_server() as server, server.client() as http:
        status, message = read_error(http, input="a")
        ollama = http.post("/api/embed", json={"input": "a"})
    assert status == 400
    assert (
        "generates text and makes no embeddings: serve another model, or this one with --task embed"
        in message
    )
    assert (ollama.status_code, ollama.json()["error"]) == (400, message)


def test_another_model_is_not_found(http: httpx.Client) -> None:
    assert read_error(http, input="a", model="other")[0] == 404


def test_the_list_of_models_names_the_task(http: httpx.Client) -> None:
    model = http.get("/v1/models").json()["data"][0]
    assert model["capabilities"] == ["embedding", "rerank"]
    assert model["architecture"]["output_modalities"] == ["embeddings"]
    assert http.get("/api/tags").json()["models"][0]["capabilities"] == ["embedding"]
    assert "/v1/embeddings \\" in http.get("/about", headers={"Accept": "text/html"}).text
    assert http.get("/health").status_code == 200


def test_metrics_count_texts_as_prompts(http: httpx.Client) -> None:
    def num_tokens() -> float:
        lines = http.get("/metrics").text.splitlines()
        return float(
            next(line for line in lines if line.startswith("ouzel_prompt_tokens_total")).rpartition(
                " "
            )[2]
        )

    before = num_tokens()
    vectors(http, input=["abc", "de"])
    assert num_tokens() - before == 5


def test_a_client_that_leaves_frees_its_place(server: RunningServer, http: httpx.Client) -> None:
    body = b'{"input": [' + b",".join([b'"abcdefgh"'] * 2048) + b"]}"
    head = (
        f"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    pause = threading.Event()
    vector_runner.may_run.clear()
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(head + body)
            # one place is the request's, the others are the further texts' places
            while server.engine.num_unfinished < 2:
                pause.wait(0.001)
        while server.engine.num_unfinished:
            pause.wait(0.001)
    finally:
        vector_runner.may_run.set()
    assert vectors(http, input="ab") == [make_vector("ab")]


def test_an_unknown_path_is_told_the_endpoints_of_embeddings(http: httpx.Client) -> None:
    message = http.post("/v1/moderations", json={}).json()["error"]["message"]
    assert message == (
        "unknown URL: POST /v1/moderations; this server has no such endpoint; "
        "it has /v1/embeddings, /v1/pooling, /v1/rerank, /v2/rerank, /v1/score, /api/embed"
    )
