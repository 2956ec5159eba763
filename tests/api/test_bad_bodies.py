"""A body that cannot be read is refused, and limits of bodies and of tokens hold."""

import gzip
import socket

import httpx
import msgspec
import pytest

from ouzel.api.operations import DOCUMENTED
from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.config import LimitsConfig
from tests.api.requests import chat, read_error
from tests.api.server_setup import MODEL
from tests.api.serving import running_server
from tests.api.test_bad_input import MESSAGE


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"]
)
def test_a_compressed_body_is_refused_in_words_that_name_the_encoding(
    http: httpx.Client, path: str
) -> None:
    body = gzip.compress(msgspec.json.encode(chat("Hi")))
    response = http.post(path, content=body, headers={"content-encoding": "gzip"})
    assert response.status_code == 415
    assert read_error(response)["code"] == "unsupported_encoding"
    assert read_error(response)["message"] == "Content-Encoding must be identity, given gzip"


def test_the_encoding_of_a_plain_body_may_be_named(http: httpx.Client) -> None:
    response = http.post(
        "/v1/chat/completions", json=chat("Hi"), headers={"content-encoding": "Identity"}
    )
    assert response.status_code == 200


def test_the_content_type_does_not_matter(http: httpx.Client) -> None:
    body = b'{"model": "parrot", "messages": [{"role": "user", "content": "Hi"}]}'
    response = http.post(
        "/v1/chat/completions", content=body, headers={"content-type": "text/plain"}
    )
    assert response.json()["choices"][0]["message"]["content"] == "Hi"


@pytest.mark.parametrize(
    "path", ["chat/completions", "completions", "tokenize", "responses", "responses/input_tokens"]
)
@pytest.mark.parametrize("fields", [{}, {"model": None}, {"model": ""}])
def test_a_server_with_one_model_needs_no_name(
    http: httpx.Client, path: str, fields: dict[str, object]
) -> None:
    prompts: dict[str, dict[str, object]] = {
        "chat/completions": {"messages": [MESSAGE]},
        "completions": {"prompt": "Hi"},
    }
    body = prompts.get(path, {"prompt": "Hi"} if path == "tokenize" else {"input": "Hi"})
    response = http.post(f"/v1/{path}", json={**body, **fields})
    assert response.status_code == 200, response.text
    assert response.json().get("model", MODEL) == MODEL


def test_an_unknown_model_is_a_404(http: httpx.Client) -> None:
    response = http.post("/v1/chat/completions", json={"model": "gpt-9", "messages": [MESSAGE]})
    assert response.status_code == 404
    assert read_error(response)["code"] == "model_not_found"
    assert read_error(response)["param"] == "model"


def test_a_prompt_longer_than_the_context_is_refused(http: httpx.Client) -> None:
    response = http.post("/v1/chat/completions", json=chat("x" * 5000))
    assert response.status_code == 400
    assert read_error(response)["code"] == "context_length_exceeded"
    assert "4096" in read_error(response)["message"]


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        (
            b"[" + b"[]," * 300_000 + b"1]",
            "262144 objects, lists, strings and names of fields, given 300007",
        ),
        (
            b"[" + b'",",' * 300_000 + b"1]",
            "262144 objects, lists, strings and names of fields, given 300007",
        ),
        (
            b"{" + b'"\\\\":1,' * 300_000 + b'"":1}',
            "262144 objects, lists, strings and names of fields, given 300008",
        ),
        (b"[" + b"7," * 2_200_000 + b"1]", "2097152 values, given 2200005"),
    ],
    ids=["lists", "strings", "names", "numbers"],
)
def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(
    http: httpx.Client, values: bytes, limit: str
) -> None:
    response = http.post(
        "/v1/chat/completions", content=b'{"model":"parrot","messages":[],"x":' + values + b"}"
    )
    assert response.status_code == 400
    assert read_error(response)["message"] == f"the body must have <= {limit}"


@pytest.mark.parametrize(
    "text", ["a, [b], {c}: " * 300_000, '"' * 2_000_000, "\\" * 2**20 + '"' * 300_000]
)
def test_a_long_text_is_one_value(http: httpx.Client, text: str) -> None:
    response = http.post("/v1/chat/completions", json=chat(text))
    assert read_error(response)["code"] == "context_length_exceeded"


def test_a_million_token_ids_are_not_too_many_values(http: httpx.Client) -> None:
    response = http.post("/v1/completions", json={"model": "parrot", "prompt": [7] * 2**20})
    assert read_error(response)["code"] == "context_length_exceeded"


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_body_of_100_megabytes_is_refused_before_it_is_read(
    http: httpx.Client, is_announced: bool
) -> None:
    megabyte = b"x" * 2**20
    body = megabyte * 100 if is_announced else (megabyte for _ in range(100))
    response = http.post("/v1/chat/completions", content=body)
    assert response.status_code == 413
    assert read_error(response)["message"] == "the request body must be <= 16777216 bytes long"
    assert http.post("/v1/chat/completions", json=chat("Hi")).status_code == 200


def test_the_models_makers_say_how_long_and_where_to_stop_unless_the_request_does() -> None:
    defaults = SamplingDefaults(max_new_tokens=5, stop_strings=["d"])
    with running_server(sampling_defaults=defaults) as server, server.client() as http:

        def said(text: str, **fields: object) -> str:
            answer = http.post("/v1/chat/completions", json=chat(text, **fields)).json()
            return str(answer["choices"][0]["message"]["content"])

        assert said("abcdefgh") == "abc"
        assert said("abcdefgh", stop=[]) == "abcde"
        assert said("abcdefgh", stop="b", max_tokens=8) == "a"
        assert said("abcabcabc", max_tokens=8) == "abcabcab"


def test_a_servers_own_limit_of_tokens_counts_for_every_request() -> None:
    with running_server(max_tokens_limit=4) as server, server.client() as http:
        unsaid = http.post("/v1/chat/completions", json=chat("abcdefgh")).json()
        assert (
            unsaid["choices"][0]["message"]["content"],
            unsaid["choices"][0]["finish_reason"],
        ) == ("abcd", "length")
        assert (
            http.post("/v1/chat/completions", json=chat("abcdefgh", max_tokens=4)).status_code
            == 200
        )
        refused = http.post("/v1/chat/completions", json=chat("abcdefgh", max_completion_tokens=5))
        assert read_error(refused)["param"] == "max_completion_tokens"
        assert (
            "must be <= 4, this server's max_tokens_limit, given 5"
            in read_error(refused)["message"]
        )


@pytest.mark.parametrize(
    "path",
    [
        operation.path.replace("{model_name}", "parrot")
        for operation in DOCUMENTED
        if operation.bodies
        and operation.changing is None  # a request without the admin key is a 401 at once
        and "{model_version}" not in operation.path  # no model has versions: a 404 at once
    ],
)
def test_every_endpoint_with_a_body_limits_its_length(path: str) -> None:
    limits = LimitsConfig(max_body_bytes=1024)
    with running_server(limits=limits) as server, server.client() as http:
        for body in (b"x" * 1025, (b"x" * 205 for _ in range(5)), (b"x" for _ in range(2000))):
            response = http.post(path, content=body)
            assert response.status_code == 413
            assert '"the request body must be <= 1024 bytes long"' in response.text
        response = http.post(
            path, content=(b" " for _ in range(1024)), headers={"content-type": "application/json"}
        )
        assert response.status_code in (400, 422, 424), (
            "as long as allowed; 422 is TEI's, 424 LMI's"
        )


def test_without_a_chat_template_chat_is_refused_and_completions_work() -> None:
    with running_server(has_chat_template=False) as server, server.client() as http:
        response = http.post("/v1/chat/completions", json=chat("Hi"))
        assert response.status_code == 400
        assert "no chat template" in read_error(response)["message"]
        body = {"model": "parrot", "prompt": "abc", "max_tokens": 4}
        assert http.post("/v1/completions", json=body).json()["choices"][0]["text"] == "abca"
        assert http.get("/v1/models/parrot").json()["capabilities"] == ["completion"]


def test_a_body_that_does_not_come_gives_its_place_back() -> None:
    limits = LimitsConfig(body_timeout_s=0.05)
    with running_server(limits=limits) as server, server.client() as http:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
                b"content-length: 100\r\n\r\n{"
            )
            answer = ""
            while not answer.endswith("}"):
                answer += connection.recv(65536).decode()

        assert answer.startswith("HTTP/1.1 408")
        assert "the request body must arrive within 0.05 s" in answer
        assert server.engine.num_unfinished == 0
        assert http.post("/v1/chat/completions", json=chat("Hi")).status_code == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the body is not valid JSON"),
        (b'{"model": "parrot",}', "the body is not valid JSON"),
        (b'{"model": "\xff"}', "the body is not valid JSON"),
        (
            b'{"model": "\\ud800x"}',
            "model must be Unicode text: half of a surrogate pair is no character",
        ),
        (
            b'{"messages": [{"role": "user", "content": "a\\udc00"}]}',
            "messages[0].content must be Unicode text",
        ),
        (b'{"\\ud800": 1}', "the body is not valid JSON"),
        (b'{"metadata": {"\\ud800": "\\udfff"}}', "metadata.? must be Unicode text"),
        (b'{"\\ud800": 1e999}', "? must be a finite number, at most 1e308"),
        (b'{"temperature": NaN}', "temperature must be a finite number, at most 1e308"),
        (b'{"temperature": -Infinity}', "temperature must be a finite number"),
        (b'{"model": "\xed\xa0\x80"}', "model must be Unicode text"),
        ('{"model": "parrot"}'.encode("utf-16"), "the body is not valid JSON"),
        (b'{"seed": 1e999}', "seed must be a finite number, at most 1e308"),
        (b'{"stop": ["a", {"b": 1' + b"0" * 5000 + b"}]}", "stop[1].b must be a finite number"),
        (
            b'{"model": "parrot", "stop": ' + b"[" * 400 + b"]" * 400 + b', "messages": []}',
            "stop[0] must be a string",
        ),
        (b"[" * 100_000, "the body is nested too deeply"),
        (b'{"a":' * 900 + b"1e999" + b"}" * 900, "a.a.a must be a finite number, at most 1e308"),
        (b"[1, 2]", "the body must be a JSON object, given [1,2]"),
        (b"null", "the body must be a JSON object, given null"),
        (b"", "the body must be a JSON object, given nothing"),
        (b" \n", "the body must be a JSON object, given nothing"),
        (b'{"model": "parrot"}', "messages is required"),
    ],
)
def test_a_body_that_is_no_request_is_refused(
    http: httpx.Client, body: bytes, message: str
) -> None:
    response = http.post("/v1/chat/completions", content=body)
    assert response.status_code == 400
    assert message in read_error(response)["message"]


@pytest.mark.parametrize(
    ("fields", "answers"),
    [
        (b'"n": 2.0', ["Hi", "Hi"]),
        (b'"n": "2"', ["Hi", "Hi"]),
        (b'"max_tokens": "1.0"', ["H"]),
        (b'"temperature": "0.5", "logit_bias": {"5": "1e1"}, "stop_token_ids": ["105"]', ["H"]),
        (
            b'"n": null, "stop": null, "stream": null, "tools": null, "logit_bias": null, '
            b'"stream_options": null',
            ["Hi"],
        ),
        (b'"n": 3, "n": 2', ["Hi", "Hi"]),
        (b'"stop": "i", "user": "1"', ["H"]),
        (b'"stop": "\\u0000", "cache_salt": "\\u0000"', ["Hi"]),
        (b'"something": {"unknown": [1]}', ["Hi"]),
    ],
)
def test_numbers_are_read_leniently_and_null_is_not_given(
    http: httpx.Client, fields: bytes, answers: list[str]
) -> None:
    body = (
        b'\xef\xbb\xbf{"model": "parrot", "messages": [{"role": "user", "content": "Hi"}], '
        + fields
        + b"}"
    )
    response = http.post("/v1/chat/completions", content=body)
    assert response.status_code == 200, response.text
    assert [choice["message"]["content"] for choice in response.json()["choices"]] == answers
