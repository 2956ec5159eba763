"""OVMS's pages on chats: requests, snippets and examples, with and without `--profile ovms`."""

from typing import Any  # JSON

import openai
import pytest

from tests.peer_documents.conftest import BOTH, DEFAULT, OVMS
from tests.peer_documents.curl import parse_curl
from tests.peer_documents.facts import read_facts
from tests.peer_documents.peer import Peer
from tests.peer_documents.shapes import find_differences, list_paths
from tests.peer_documents.streams import merge_repeated, read_chunks
from tests.serve.answers import put_together

Json = dict[str, Any]

pytestmark = pytest.mark.serves  # the imports alone do not give this marker

PAGES = ("ovms_chat_2026", "ovms_chat_2025", "ovms_chat_2024")
REQUESTS = [(page, index) for page in PAGES for index in range(len(read_facts(page)["requests"]))]
HELLO, STREAMED_HELLO = read_facts("ovms_chat_2026")["requests"][:2]
[EXAMPLE] = read_facts("ovms_chat_2026")["examples"]["completion"]
THINKING = {"chat_template_kwargs": {"enable_thinking": True}}
CALLING = {
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"enum": ["Rome"]}},
                    "required": ["city"],
                },
            },
        }
    ],
    "tool_choice": "required",
}


@BOTH
@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(("page", "index"), REQUESTS)
def test_a_request_gets_an_answer_with_every_key_of_the_example(
    peer: Peer, page: str, index: int, is_stream: bool
) -> None:
    response = peer.send(
        read_facts(page)["requests"][index], stream=is_stream, stream_options=_make_usage(is_stream)
    )
    answer = put_together(read_chunks(response)) if is_stream else response.json()

    [example] = read_facts(page)["examples"]["completion"]
    kind = "=chat.completion.chunk" if is_stream else "=chat.completion"
    assert response.status_code == 200, response.text
    assert find_differences(example | {"object": kind}, answer) == []
    assert answer["choices"][0]["finish_reason"] == "stop"
    if answer["model"] == "llava":
        assert "red circle" in answer["choices"][0]["message"]["content"]


def _make_usage(is_stream: bool) -> Json | None:
    return {"include_usage": True} if is_stream else None


@BOTH
@pytest.mark.parametrize(("page", "index"), [("ovms_chat_2025", 0), ("ovms_chat_2024", 0)])
def test_a_malformed_body_of_the_pages_is_refused(peer: Peer, page: str, index: int) -> None:
    """The two pages write `stream: false` without quotation marks."""
    request = parse_curl(read_facts(page)["requests"][index])
    response = peer.send_body(request, request.body)

    assert "    stream: false" in request.body
    if peer.profile == "ovms":
        assert response.status_code == 412
        assert response.json() == {"error": "The file is not valid json - Cannot parse JSON body"}
    else:
        assert response.status_code == 400
        assert response.json()["error"]["type"] == "invalid_request_error"


@OVMS
def test_the_chunks_of_the_example_stream_come_in_its_order(peer: Peer) -> None:
    first, reasoning, last, done = read_facts("ovms_chat_2026")["stream"]

    chunks = read_chunks(peer.send(STREAMED_HELLO, **THINKING))

    assert done == "[DONE]"
    assert merge_repeated([_kind(chunk) for chunk in chunks]) == [
        "role",
        "reasoning",
        "content",
    ]
    for chunk in chunks:
        shape = {"role": first, "reasoning": reasoning, "content": last}[_kind(chunk)]
        is_last = chunk is chunks[-1]
        assert find_differences(shape if is_last else _with_open_end(shape), chunk) == []
        assert (chunk["choices"][0]["finish_reason"] is None) == (not is_last)


@OVMS
@pytest.mark.parametrize(
    "fields",
    [{}, THINKING, CALLING, {"max_tokens": 3}],
    ids=["text", "thinking", "calling", "short"],
)
def test_the_first_chunk_has_the_role_and_content_null(peer: Peer, fields: Json) -> None:
    """A client measures the time to the first token by this chunk."""
    [choice] = read_chunks(peer.send(STREAMED_HELLO, **fields))[0]["choices"]

    assert choice["delta"] == {"role": "assistant", "content": None}
    assert choice["finish_reason"] is None


@OVMS
@pytest.mark.parametrize(("fields", "reason"), [({}, "stop"), ({"max_tokens": 3}, "length")])
def test_the_last_chunk_has_text_and_the_finish_reason(
    peer: Peer, fields: Json, reason: str
) -> None:
    chunks = read_chunks(peer.send(STREAMED_HELLO, **fields))
    [choice] = chunks[-1]["choices"]

    assert choice["finish_reason"] == reason
    assert choice["delta"]["content"]


@DEFAULT
def test_without_the_profile_the_role_comes_with_a_piece_and_the_end_has_a_chunk_of_its_own(
    peer: Peer,
) -> None:
    """OpenAI's form stays the default, as docs/reference/conformance.md says."""
    chunks = read_chunks(peer.send(STREAMED_HELLO, **THINKING))

    first = chunks[0]["choices"][0]["delta"]
    assert first["role"] == "assistant"
    assert first.keys() & {"content", "reasoning_content"}
    assert ("content", None) not in first.items()
    assert chunks[-1]["choices"][0]["delta"] == {}
    assert [bool(chunk["choices"][0]["finish_reason"]) for chunk in chunks] == [False] * (
        len(chunks) - 1
    ) + [True]


def _kind(chunk: Json) -> str:
    delta = chunk["choices"][0]["delta"]
    if "role" in delta:
        return "role"
    return "reasoning" if "reasoning_content" in delta else "content"


def _with_open_end(shape: Json) -> Json:
    """Returns the shape of a chunk that is not the last one."""
    [choice] = shape["choices"]
    return shape | {"choices": [choice | {"finish_reason": "null"}]}


@BOTH
def test_the_usage_is_in_a_chunk_before_the_end_and_null_in_all_others(peer: Peer) -> None:
    *others, usage = read_chunks(peer.send(STREAMED_HELLO, stream_options={"include_usage": True}))

    assert usage["choices"] == []
    assert find_differences(EXAMPLE["usage"], usage["usage"]) == []
    assert [chunk["usage"] for chunk in others] == [None] * len(others)


@BOTH
@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("page", PAGES)
def test_an_answer_has_every_field_of_the_table(peer: Peer, page: str, is_stream: bool) -> None:
    found: set[str] = set()
    for fields in ({}, THINKING, CALLING):
        response = peer.send(
            HELLO, **fields, stream=is_stream, stream_options=_make_usage(is_stream)
        )
        found |= list_paths(put_together(read_chunks(response)) if is_stream else response.json())

    assert set(read_facts(page)["response_fields"]) - found == set()


@BOTH
@pytest.mark.parametrize("page", PAGES)
def test_the_snippet_of_the_page_runs(peer: Peer, page: str) -> None:
    """The page calls the method for prompts with messages, which openai refuses.

    The page means the method for chats.
    """
    [snippet] = read_facts(page)["snippets"]
    with openai.OpenAI(base_url=f"{peer.root}/v3", api_key="unused", max_retries=0) as client:
        with pytest.raises(TypeError, match="prompt"):
            exec(snippet, {"client": client, "model": "llama3"})
        mended = snippet.replace("client.completions", "client.chat.completions")
        names: Json = {"client": client, "model": "llama3"}
        exec(mended, names)
        streamed: Json = {"client": client, "model": "llama3"}
        exec(mended.replace("stream=False", "stream=True"), streamed)
        deltas = [chunk.choices[0].delta.content or "" for chunk in streamed["response"]]

    answer = names["response"]
    assert answer.choices[0].message.content == "".join(deltas) != ""
    assert answer.usage.completion_tokens <= 100
