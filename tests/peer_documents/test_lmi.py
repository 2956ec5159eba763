"""LMI's page on chats: requests, messages, examples, objects, with and without `--profile lmi`."""

import json
from typing import Any  # JSON

import httpx
import pytest

from tests.peer_documents.conftest import DEFAULT, LMI
from tests.peer_documents.curl import parse_curl
from tests.peer_documents.facts import read_facts
from tests.peer_documents.peer import PICTURE, Peer
from tests.peer_documents.shapes import find_differences
from tests.peer_documents.streams import read_json_lines

Json = dict[str, Any]

pytestmark = pytest.mark.serves  # the imports alone do not give this marker

PAGE = read_facts("lmi_chat")
[ASK] = PAGE["requests"]
TEXT_MESSAGE, PICTURE_MESSAGE = PAGE["messages"]
[COMPLETION] = PAGE["examples"]["completion"]
FIRST, LAST = PAGE["examples"]["chunk"]
[LOGPROBS] = PAGE["examples"]["logprobs"]
OBJECTS = PAGE["objects"]
PLACEHOLDER = "<base64 encoded image data | image url>"


@LMI
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/invocations"])
def test_the_request_gets_an_answer_with_every_key_of_the_example(peer: Peer, path: str) -> None:
    response = send(peer, ASK, path)

    answer = response.json()
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    assert find_differences(COMPLETION, answer) == []
    [choice] = answer["choices"]
    assert find_differences(LOGPROBS, choice["logprobs"]) == []
    assert choice["finish_reason"] == "eos_token"


@LMI
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/invocations"])
def test_the_lines_of_a_stream_equal_the_example(peer: Peer, path: str) -> None:
    streamed = send(peer, ASK, path, stream=True, max_tokens=8, temperature=0.0)
    *others, last = read_json_lines(streamed)  # a busy server may join all tokens in one line

    for line in others[:1]:
        assert find_differences(FIRST, line) == []
    for line in others:
        assert find_differences(LAST, line) == ["choices[].finish_reason is null, not string"]
    assert find_differences(LAST, last) == []
    assert last["choices"][0]["finish_reason"] == "length"
    assert last["choices"][0]["delta"]["content"]


@DEFAULT
def test_without_the_profile_logprobs_in_a_stream_have_the_form_of_whole_answers(
    peer: Peer,
) -> None:
    """`--lmi-strict-logprobs` gives LMI's own form, a defect that conformance.md describes."""
    whole = send(peer, ASK, "/models/llama3/invoke").json()
    streamed = send(peer, ASK, "/models/llama3/invoke", stream=True, max_tokens=8, temperature=0.0)
    *others, last = read_json_lines(streamed)  # a busy server may join all tokens in one line

    assert find_differences(COMPLETION, whole) == []
    for line in others[:1]:
        assert find_differences(FIRST, line) == ["choices[].logprobs is dict, not list"]
    assert find_differences(LAST, last) == ["choices[].logprobs is dict, not list"]
    assert find_differences(LOGPROBS, last["choices"][0]["logprobs"]) == []


@LMI
@pytest.mark.parametrize("is_stream", [False, True])
def test_each_finish_reason_of_the_page_is_sent(peer: Peer, is_stream: bool) -> None:
    whole = send(peer, ASK, "/invocations").json()["choices"][0]["message"]["content"]
    by_fields = [
        ({"max_tokens": 3}, "length"),
        ({}, "eos_token"),
        ({"stop": whole[5:8]}, "stop_sequence"),
    ]

    for fields, reason in by_fields:
        response = send(peer, ASK, "/invocations", stream=is_stream, **fields)
        answer = read_json_lines(response)[-1] if is_stream else response.json()
        assert answer["choices"][0]["finish_reason"] == reason


@LMI
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/invocations"])
@pytest.mark.parametrize("form", ["bare base64", "data URL", "URL"])
def test_a_picture_of_the_page_is_read(peer: Peer, path: str, form: str) -> None:
    urls = {
        "bare base64": peer.picture_base64(),
        "data URL": f"data:image/jpeg;base64,{peer.picture_base64()}",
        "URL": f"{peer.pictures_root}/{PICTURE}",
    }
    message = json.loads(json.dumps(PICTURE_MESSAGE).replace(PLACEHOLDER, urls[form]))
    assert message != PICTURE_MESSAGE

    response = send(peer, ASK, f"{path}?model_name=llava", messages=[TEXT_MESSAGE, message])

    assert response.status_code == 200, response.text
    assert "red circle" in response.json()["choices"][0]["message"]["content"]


@LMI
def test_every_object_has_the_fields_of_its_table(peer: Peer) -> None:
    answer = send(peer, ASK, "/invocations").json()
    chunk, *_ = read_json_lines(send(peer, ASK, "/invocations", stream=True))
    [choice], [stream_choice] = answer["choices"], chunk["choices"]
    objects = {
        "completion": answer,
        "chunk": chunk,
        "Message": choice["message"],
        "Choice": choice,
        "StreamChoice": stream_choice,
        "Logprobs": choice["logprobs"]["content"][0],
        "TopLogprob": choice["logprobs"]["content"][0]["top_logprobs"][0],
        "Usage": answer["usage"],
    }

    assert objects.keys() == OBJECTS.keys()
    for name, fields in OBJECTS.items():
        assert set(fields) - objects[name].keys() == set(), name


@LMI
@pytest.mark.parametrize("is_stream", [False, True])
def test_every_field_of_the_table_of_requests_is_taken_at_once(peer: Peer, is_stream: bool) -> None:
    """The example of `logit_bias` has a token id beyond the demo model's vocabulary."""
    values: Json = {
        "messages": [TEXT_MESSAGE, {"role": "user", "content": "What is deep learning?"}],
        "model": "gpt2",
        "frequency_penalty": 0.5,
        "logit_bias": {"435": -100.0, "640": -100.0},
        "logprobs": True,
        "top_logprobs": 20,
        "max_tokens": 5,
        "n": 1,
        "presence_penalty": 0.5,
        "seed": 1,
        "stop": ["test"],
        "stream": is_stream,
        "temperature": 1.0,
        "top_p": 0.9,
        "user": "test",
        "ignore_eos": True,
    }
    assert values.keys() == set(PAGE["request_fields"])

    response = send(peer, ASK, "/invocations", **values)
    answer = read_json_lines(response)[-1] if is_stream else response.json()

    assert response.status_code == 200, response.text
    assert answer["choices"][0]["finish_reason"] == "length"


def send(peer: Peer, command: str, path: str, **fields: object) -> httpx.Response:
    url = httpx.URL(parse_curl(command).url)
    return peer.send(command.replace(str(url), f"{url.scheme}://{url.host}{path}"), **fields)
