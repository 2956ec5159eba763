"""SageMaker's paths answer over HTTP; `tests/clients` sends them requests of boto3."""

import json
import struct
from collections.abc import Iterator
from zlib import crc32

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.lmi.answers import PREFIX
from tests.api.requests import Json
from tests.api.serving import running_server

BODY: Json = {"inputs": "Hi", "parameters": {"max_new_tokens": 4}}
STREAMED = "/endpoints/parrot/invocations-response-stream"


def read_messages(response: httpx.Response) -> list[tuple[dict[str, str], bytes]]:
    """Returns headers and payload of each message; checks both checksums of each."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/vnd.amazon.eventstream"
    rest, messages = response.content, []
    while rest:
        length, headers_length, prelude_crc = struct.unpack(">III", rest[:12])
        message, rest = rest[:length], rest[length:]
        assert len(message) == length and prelude_crc == crc32(message[:8])
        assert struct.unpack(">I", message[-4:]) == (crc32(message[:-4]),)
        messages.append(
            (parse_headers(message[12 : 12 + headers_length]), message[12 + headers_length : -4])
        )
    return messages


def parse_headers(data: bytes) -> dict[str, str]:
    headers = {}
    while data:
        name, data = data[1 : 1 + data[0]].decode(), data[1 + data[0] :]
        kind, length = struct.unpack(">BH", data[:3])
        assert kind == 7
        headers[name], data = data[3 : 3 + length].decode(), data[3 + length :]
    return headers


def read_payload(response: httpx.Response) -> bytes:
    parts = read_messages(response)
    expected = {
        ":message-type": "event",
        ":event-type": "PayloadPart",
        ":content-type": "application/octet-stream",
    }
    assert [headers for headers, _ in parts] == [expected] * len(parts)
    return b"".join(payload for _, payload in parts)


@pytest.mark.parametrize("name", ["parrot", "org-parrot", "org_parrot"])
def test_an_endpoint_is_a_model_by_its_name(http: httpx.Client, name: str) -> None:
    answer = http.post(
        f"/endpoints/{name}/invocations", json=BODY, headers={"authorization": "AWS4-HMAC-SHA256 x"}
    )
    assert answer.json() == {"generated_text": "HiHi"}


def test_a_stream_comes_in_parts(http: httpx.Client) -> None:
    response = http.post(STREAMED, json={**BODY, "stream": True})
    assert response.headers["x-amzn-sagemaker-content-type"] == "application/jsonlines"
    lines = [json.loads(line) for line in read_payload(response).splitlines()]
    assert "".join(line["token"]["text"] for line in lines) == "HiHi"
    assert lines[-1]["generated_text"] == "HiHi"


def test_a_stream_of_events_comes_in_parts(http: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}
    response = http.post(
        STREAMED,
        json=body,
        headers={"x-amzn-sagemaker-accept": "text/event-stream", "accept": "*/*"},
    )
    assert response.headers["x-amzn-sagemaker-content-type"].startswith("text/event-stream")
    assert read_payload(response).endswith(b"data: [DONE]\n\n")


def test_an_answer_that_is_no_stream_comes_in_a_part(http: httpx.Client) -> None:
    response = http.post(STREAMED, json=BODY)
    assert response.headers["x-amzn-sagemaker-content-type"] == "application/json"
    assert json.loads(read_payload(response)) == {"generated_text": "HiHi"}


def test_an_error_in_a_stream_is_a_part_too(http: httpx.Client) -> None:
    response = http.post(
        STREAMED, json={"messages": [{"role": "user", "content": "ab|fail|"}], "stream": True}
    )
    *_, last = read_payload(response).splitlines()
    assert json.loads(last)["code"] == "ModelError"


@pytest.mark.parametrize("path", ["/endpoints/parrot/invocations", STREAMED])
def test_a_refused_body_is_a_model_error(http: httpx.Client, path: str) -> None:
    response = http.post(path, json={"inputs": ""})
    error = response.json()
    assert (response.status_code, error["code"], error["OriginalStatusCode"]) == (
        424,
        "ModelError",
        424,
    )
    assert json.loads(error["OriginalMessage"])["error"].startswith(PREFIX)
    assert error["OriginalMessage"] in error["Message"]


@pytest.mark.parametrize(
    "name",
    [
        "X-Amzn-SageMaker-Target-Model",
        "X-Amzn-SageMaker-Target-Variant",
        "X-Amzn-SageMaker-Enable-Explanations",
        "X-Amzn-SageMaker-Inference-Component",
        "X-Amzn-SageMaker-Target-Container-Hostname",
        "X-Amzn-SageMaker-Session-Id",
    ],
)
def test_headers_that_ask_for_something_else_are_refused(http: httpx.Client, name: str) -> None:
    response = http.post("/endpoints/parrot/invocations", json=BODY, headers={name: "mine"})
    assert (response.status_code, response.json()["code"]) == (424, "ModelError")
    assert f"{name.lower()} is not supported" in response.json()["Message"]


def test_an_unknown_endpoint_is_a_validation_error(http: httpx.Client) -> None:
    response = http.post("/endpoints/owl/invocations", json=BODY)
    assert response.status_code == 400
    assert response.json() == {
        "code": "ValidationError",
        "Message": "Model or workflow not found: owl",
    }


@pytest.fixture(scope="module")
def guarded() -> Iterator[httpx.Client]:
    with (
        running_server(config=ServerConfig(api_key=("sk-one",))) as server,
        server.client() as client,
    ):
        yield client


def test_a_signature_is_no_key(guarded: httpx.Client) -> None:
    signed = {"authorization": "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=c"}
    refused = guarded.post("/endpoints/parrot/invocations", json=BODY, headers=signed)
    assert (refused.status_code, refused.json()["code"]) == (401, "AccessDeniedException")
    assert (
        "Authorization AWS4-HMAC-SHA256 is none: send the key as 'X-Api-Key: KEY'"
        in refused.json()["Message"]
    )
    with_key = guarded.post(
        "/endpoints/parrot/invocations", json=BODY, headers=signed | {"x-api-key": "sk-one"}
    )
    assert with_key.json() == {"generated_text": "HiHi"}
