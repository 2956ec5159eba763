"""/invocations reads paths, model names, headers and CSV bodies, and has LMI's statuses."""

import logging

import httpx
import pytest

from ouzel.config import LimitsConfig, ServerConfig
from tests.api.lmi.answers import PREFIX, read_lines, read_refusal
from tests.api.requests import Json
from tests.api.serving import running_server

BODY: Json = {"inputs": "Hi", "parameters": {"max_new_tokens": 4}}
ANSWER = {"generated_text": "HiHi"}
NO_SCHEMA = "Input parsing failed: invalid payload. must contain prompt, inputs, or messages"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/invocations", {}),
        ("/invocations?model_name=parrot", {}),
        ("/invocations?model_name=org/parrot", {}),
        ("/invocations", {"model_name": "org_parrot"}),
        ("/invocations", {"X-Amzn-SageMaker-Custom-Attributes": "model_name=parrot; trace=1"}),
        ("/predictions/parrot", {}),
        ("/models/org/parrot/invoke", {}),
    ],
)
def test_the_one_model_goes_by_its_names(
    http: httpx.Client, path: str, headers: dict[str, str]
) -> None:
    assert http.post(path, json=BODY, headers=headers).json() == ANSWER


@pytest.mark.parametrize(
    ("path", "headers", "name"),
    [
        ("/invocations?model_name=owl", {}, "owl"),
        ("/invocations?model_name=owl", {"model_name": "parrot"}, "owl"),
        ("/invocations", {"model_name": "owl"}, "owl"),
        ("/invocations", {"X-Amzn-SageMaker-Custom-Attributes": "model_name=owl"}, "owl"),
        ("/predictions/owl", {}, "owl"),
        ("/predictions/parrot/2", {}, "2"),
        ("/models/owl/invoke", {}, "owl"),
    ],
)
def test_another_model_is_a_404(
    http: httpx.Client, path: str, headers: dict[str, str], name: str
) -> None:
    response = http.post(path, json=BODY, headers=headers)
    assert response.status_code == 404
    assert response.json() == {
        "code": 404,
        "type": "ModelNotFoundException",
        "message": f"Model or workflow not found: {name}",
    }


def test_the_body_says_which_schema_it_is_in(http: httpx.Client) -> None:
    message = {"role": "user", "content": "Hi"}
    assert "choices" in http.post("/invocations", json={"messages": [message]}).json()
    assert "generated_text" in http.post("/invocations", json={"inputs": "Hi"}).json()
    assert http.post("/invocations", json={"prompt": "Hi"}).json()["object"] == "text_completion"
    chunks = read_lines(
        http.post("/invocations", json={"prompt": "Hi", "max_tokens": 4, "stream": True})
    )
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "HiHi"


def test_the_fields_of_two_schemas_are_refused(http: httpx.Client) -> None:
    assert "prompt is not supported" in read_refusal(
        http.post("/invocations", json={"inputs": "Hi", "prompt": "a"})
    )


@pytest.mark.parametrize("body", [{}, {"input": "Hi"}, {"messages": None}])
def test_a_body_in_no_schema_is_refused_in_the_documented_words(
    http: httpx.Client, body: Json
) -> None:
    assert read_refusal(http.post("/invocations", json=body)) == NO_SCHEMA


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "the body must be a JSON object, given nothing"),
        ("{", "the body is not valid JSON"),
        ("[1]", "the body must be a JSON object, given [1]"),
    ],
)
def test_a_body_that_is_no_object_is_refused(http: httpx.Client, body: str, message: str) -> None:
    response = http.post("/invocations", content=body, headers={"content-type": "application/json"})
    assert read_refusal(response).startswith(PREFIX + message)


def test_the_reason_phrase_is_one_line(http: httpx.Client) -> None:
    response = http.post("/invocations", json={"inputs": "a\nb", "parameters": {"temperature": 9}})
    assert (response.status_code, response.reason_phrase) == (424, "Failed Dependency")


@pytest.mark.parametrize(
    ("content_type", "content"),
    [
        ("application/json", b'{"inputs": "Hi", "parameters": {"max_new_tokens": 4}}'),
        (
            "Application/JSON; charset=utf-8",
            b'{"inputs": "Hi", "parameters": {"max_new_tokens": 4}}',
        ),
        (None, b'{"inputs": "Hi", "parameters": {"max_new_tokens": 4}}'),
        ("text/plain; charset=utf-8", b"HiHi"),
    ],
)
def test_content_types(http: httpx.Client, content_type: str | None, content: bytes) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    assert (
        http.post("/invocations", content=content, headers=headers)
        .json()["generated_text"]
        .startswith("HiHi")
    )


@pytest.mark.parametrize(
    "content_type", ["text/html", "image/png", "application/x-www-form-urlencoded"]
)
def test_other_content_types_are_named(http: httpx.Client, content_type: str) -> None:
    message = read_refusal(
        http.post("/invocations", content=b"x", headers={"content-type": content_type})
    )
    assert (
        message == f"{PREFIX}Content-Type must be application/json, text/plain or text/csv, "
        f"given {content_type!r}"
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Amzn-SageMaker-Adapter-Identifier": "mine"},
        {"X-Amzn-SageMaker-Custom-Attributes": "adapter=mine"},
    ],
)
def test_an_adapter_that_is_not_there_is_named(http: httpx.Client, headers: dict[str, str]) -> None:
    assert "Adapter mine is not registered" in read_refusal(
        http.post("/invocations", json=BODY, headers=headers)
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Amzn-SageMaker-Session-Id": "mine"},
        {"x-synchronous": "false"},
        {"X-Amzn-SageMaker-Custom-Attributes": "x-synchronous=false"},
        {"X-Amzn-SageMaker-Custom-Attributes": "a=b;handler=other"},
    ],
)
def test_headers_for_unsupported_features_are_refused(
    http: httpx.Client, headers: dict[str, str]
) -> None:
    assert "is not supported by this server" in read_refusal(
        http.post("/invocations", json=BODY, headers=headers)
    )


def test_other_custom_attributes_are_ignored_in_one_line(
    http: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ouzel")
    headers = {"X-Amzn-SageMaker-Custom-Attributes": "accept_eula=true;b=2;x-synchronous=true"}
    assert http.post("/invocations", json=BODY, headers=headers).json() == ANSWER
    lines = [record.getMessage() for record in caplog.records if record.name == "ouzel.wire.decode"]
    assert lines == ["ignored fields: 'custom attribute accept_eula', 'custom attribute b'"]


def test_the_request_id_may_come_from_sagemaker(http: httpx.Client) -> None:
    headers = {"X-Amzn-SageMaker-Inference-Id": "inference-7"}
    assert (
        http.post("/invocations", json=BODY, headers=headers).headers["x-request-id"]
        == "inference-7"
    )
    assert (
        http.post("/invocations", json={}, headers=headers).headers["x-request-id"] == "inference-7"
    )
    both = headers | {"x-request-id": "mine"}
    assert http.post("/invocations", json=BODY, headers=both).headers["x-request-id"] == "mine"


def test_ping_says_healthy(http: httpx.Client) -> None:
    response = http.get("/ping")
    assert response.status_code == 200
    assert response.text == '{\n  "org/parrot": {\n    "status": "Healthy"\n  }\n}\n'


def test_front_end_errors_have_their_own_object(http: httpx.Client) -> None:
    wrong_method = http.get("/invocations")
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "OPTIONS, POST")
    assert wrong_method.json().keys() == {"code", "type", "message"}
    assert wrong_method.json()["type"] == "MethodNotAllowedException"
    unknown = http.post("/predictions", json=BODY)
    assert (unknown.status_code, unknown.json()["type"]) == (404, "ResourceNotFoundException")


def test_a_key_guards_all_but_ping() -> None:
    with running_server(config=ServerConfig(api_key=("secret",))) as server:
        ping = httpx.get(f"{server.url}/ping", timeout=None)
        without = httpx.post(f"{server.url}/invocations", json=BODY, timeout=None)
        headers = {"Authorization": "Bearer secret"}
        with_key = httpx.post(f"{server.url}/invocations", json=BODY, headers=headers, timeout=None)
    assert ping.status_code == 200
    assert (without.status_code, without.json()["type"]) == (401, "UnauthorizedException")
    assert with_key.json() == ANSWER


def test_a_body_that_is_too_long_is_a_413() -> None:
    with running_server(limits=LimitsConfig(max_body_bytes=1024)) as server:
        response = httpx.post(
            f"{server.url}/invocations", json={"inputs": "a" * 2000}, timeout=None
        )
    assert (response.status_code, response.json()["code"]) == (413, 413)


def test_a_full_server_is_a_503() -> None:
    slow = {"max_num_seqs": 1, "step_s": 0.001, "max_model_len": 20_000}
    endless = {"inputs": "a" * 9000, "parameters": {"max_new_tokens": 9000}, "stream": True}
    with (
        running_server(slow, LimitsConfig(max_queued_requests=0)) as server,
        httpx.stream("POST", f"{server.url}/invocations", json=endless, timeout=None),
    ):
        response = httpx.post(f"{server.url}/invocations", json=BODY, timeout=None)
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert response.json()["type"] == "WlmCapacityException"


def test_a_failure_of_the_engine_is_a_424_or_the_last_line(http: httpx.Client) -> None:
    body = {"inputs": "ab<|fail|>"}
    assert read_refusal(http.post("/invocations", json=body)) == "scripted failure"
    lines = read_lines(http.post("/invocations", json=body | {"stream": True}))
    assert lines[-1] == {"error": "scripted failure", "code": 424}
    assert [list(line) for line in lines[:-1]] == [["token"]]


def test_a_bug_of_ours_is_a_500_without_details(http: httpx.Client) -> None:
    response = http.post("/invocations", json={"messages": [{"role": "user", "content": "#"}]})
    assert response.status_code == 500
    assert response.json()["type"] == "InternalServerException"
    assert "a detail" not in response.text


def post_csv(http: httpx.Client, text: str | bytes) -> httpx.Response:
    return http.post(
        "/invocations", content=text, headers={"content-type": "text/csv; charset=utf-8"}
    )


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("inputs\nHi\nab\n", ["Hi", "ab"]),
        ("inputs,other\nHi,value1\nab,value2", ["Hi", "ab"]),  # djl-serving's tests send this body
        ("other, Inputs \r\nvalue1,Hi\r\n\r\n,ab\r\n", ["Hi", "ab"]),
        ('\ufeffinputs\n"a, b"\n"a ""b"" c"\n"a\nb"\n', ["a, b", 'a "b" c', "a\nb"]),
        ("inputs\nü", ["ü"]),
    ],
)
def test_a_csv_body_is_a_batch_of_its_inputs(
    http: httpx.Client, text: str, answers: list[str]
) -> None:
    found = post_csv(http, text.encode())

    assert found.status_code == 200, found.text
    texts = [each["generated_text"] for each in found.json()]
    assert [text[: len(answer)] for text, answer in zip(texts, answers, strict=True)] == answers


def test_a_cell_may_be_longer_than_the_library_allows_by_default(http: httpx.Client) -> None:
    refused = read_refusal(post_csv(http, f"inputs\n{'a' * 200_000}"))
    assert "context" in refused  # only the length of the context limits the text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            "the first row of a CSV body must name the column inputs, "
            "or the columns text and text_pair, given",
        ),
        (
            "question,context\na,b",
            "the first row of a CSV body must name the column inputs, or the columns",
        ),
        (
            "invalid,header\nvalue1,value2",
            "the first row of a CSV body must name the column inputs, or the columns",
        ),
        (
            "inputs,inputs\na,b",
            "the first row of a CSV body must name the column inputs once, given it twice",
        ),
        ("inputs\n", "a CSV body must have a row behind the names of its columns, given none"),
        (
            "inputs\nHi, there",
            "row 2 of a CSV body must have 1 cells, as the first row has, given 2: "
            "a text with a comma needs quotes",
        ),
        (
            "inputs,other\na,b\na",
            "row 3 of a CSV body must have 2 cells, as the first row has, given 1: "
            "the column other is missing",
        ),
        (
            'inputs,other\na,b\n"",b',
            "row 3 of a CSV body must have a text in the column inputs, given none",
        ),
        ('inputs\nab\n"a"b', "row 3 of a CSV body is not valid CSV: ',' expected after '\"'"),
        ('inputs\n"ab', "row 2 of a CSV body is not valid CSV: unexpected end of data"),
        (
            "inputs\n" + "," * 2**20,
            "a CSV body must have <= 1048576 commas and line ends, given 1048577",
        ),
        ("inputs\n" + "a\n" * 2**16, "a CSV body must have <= 65536 rows, given more"),
        (b"inputs\n\xff", "a text/csv body must be UTF-8: invalid start byte at byte 7"),
        ("text,text_pair\na,b", 'inputs[0] must be a string, given {"text":"a","text_pair":"b"}'),
    ],
)
def test_faults_of_a_csv_body_are_named(
    http: httpx.Client, text: str | bytes, message: str
) -> None:
    assert read_refusal(post_csv(http, text)).startswith(PREFIX + message)
