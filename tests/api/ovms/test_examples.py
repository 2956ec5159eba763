"""Both profiles answer the example requests of OVMS's own documents, sent byte for byte."""

import json

import httpx

from tests.api.requests import join_content, read_events

PATH = "/v3/chat/completions"
JSON = {"Content-Type": "application/json"}

# "OpenAI API chat/completions endpoint", 2026.
UNARY = """{
    "model": "llama3",
    "messages": [
      {
        "role": "system",
        "content": "You are a helpful assistant."
      },
      {
        "role": "user",
        "content": "hello"
      }
    ],
    "stream": false
  }"""
STREAM = UNARY.replace("false", "true")
IMAGE = """{
    "model": "llava",
    "messages": [
        {
            "role": "user",
            "content": [
                {
                    "type": "text",
                    "text": "What is on the picture?"
                },
                {
                    "type": "image_url",
                    "image_url": {
                        "url": "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD ..."
                    }
                }
            ]
        }
    ],
    "temperature": 0.0,
    "max_completion_tokens": 128
}"""
# The page of 2024 and 2025 has the same example with an unquoted name.
UNQUOTED = UNARY.replace('"stream"', "stream")


def test_the_unary_example_has_the_documented_shape(any_profile: httpx.Client) -> None:
    response = any_profile.post(PATH, content=UNARY, headers=JSON)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    answer = response.json()
    (choice,) = answer["choices"]
    assert (choice["finish_reason"], choice["index"], choice["logprobs"]) == ("stop", 0, None)
    assert choice["message"]["content"] == "hello"
    assert choice["message"]["role"] == "assistant"
    assert isinstance(answer["created"], int)
    assert answer["object"] == "chat.completion"
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["completion_tokens"] + usage["prompt_tokens"]


def test_the_streamed_example_has_the_documented_shape(any_profile: httpx.Client) -> None:
    *events, end = read_events(any_profile.post(PATH, content=STREAM, headers=JSON))
    assert end == "[DONE]"
    assert join_content(events) == "hello"
    chunks = [json.loads(event) for event in events]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (
        len(chunks) - 1
    ) + ["stop"]
    assert len({(chunk["model"], chunk["created"]) for chunk in chunks}) == 1


def test_the_image_example_is_refused_by_a_model_of_texts(any_profile: httpx.Client) -> None:
    response = any_profile.post(PATH, content=IMAGE, headers=JSON)
    assert response.status_code == 400
    assert "image_url" in response.text


def test_the_old_example_was_never_json(any_profile: httpx.Client) -> None:
    response = any_profile.post(PATH, content=UNQUOTED, headers=JSON)
    assert response.status_code in (400, 412)
    assert "not valid" in response.text
