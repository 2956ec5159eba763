"""What the server says of guessed tokens, and what a client may say of them."""

import json
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import pytest

from tests.api.requests import Json, chat, events_of, metric
from tests.api.serving import running_server

SAID = "the cat sat on the mat, the cat sat on the mat, the cat sat on the mat"


@pytest.fixture(scope="module")
def guessing() -> Iterator[httpx.Client]:
    """Of a server that finds most of what it says in what it has been told."""
    with running_server(engine_factory="create_guessing_parrot") as server, server.client() as http:
        yield http


def answered(http: httpx.Client, body: Json, path: str = "chat/completions") -> Any:
    response = http.post(f"/v1/{path}", json={"model": "parrot", "temperature": 0} | body)
    assert response.status_code == 200, response.text
    return response.json()


def counted(answer: Any) -> tuple[int, int]:
    """Accepted and rejected tokens of an answer's usage."""
    details = answer["usage"]["completion_tokens_details"]
    return details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]


def text(answer: Any) -> str:
    content: str = answer["choices"][0]["message"]["content"]
    return content


def test_usage_counts_guessed_tokens_that_came_and_those_that_did_not(guessing: httpx.Client) -> None:
    before = guessing.get("/metrics").text
    answer = answered(guessing, chat(SAID))
    after = guessing.get("/metrics").text

    accepted, rejected = counted(answer)
    assert text(answer) == SAID
    assert len(SAID) // 2 < accepted < answer["usage"]["completion_tokens"]
    names = ("vllm:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_draft_tokens_total")
    grown = [metric(after, name) - metric(before, name) for name in names]
    assert grown == [accepted, accepted + rejected]


def test_a_stream_counts_them_too(guessing: httpx.Client) -> None:
    body = chat(SAID, temperature=0, stream=True, stream_options={"include_usage": True})
    *chunks, end = events_of(guessing.post("/v1/chat/completions", json=body))

    last = json.loads(chunks[-1])
    assert end == "[DONE]"
    assert len(SAID) // 2 < counted(last)[0] < last["usage"]["completion_tokens"]


def test_choices_and_prompts_are_summed(guessing: httpx.Client) -> None:
    one, several = (answered(guessing, chat(SAID, n=n)) for n in (1, 3))
    assert counted(several)[0] > 2 * counted(one)[0]
    prompt = f"<|im_start|>user\n{SAID}<|im_end|>\n<|im_start|>assistant\n"
    prompts = answered(guessing, {"prompt": [prompt, prompt], "max_tokens": len(SAID)}, "completions")
    assert counted(prompts)[0] > len(SAID)


def test_of_what_a_stop_string_cuts_off_nothing_is_accepted(guessing: httpx.Client) -> None:
    """Guesses go on behind it: the stop string is not known where they are made."""
    answer = answered(guessing, chat(SAID, stop=["at,"]))

    accepted, rejected = counted(answer)
    assert text(answer) == SAID[: SAID.index("at,")]
    assert accepted <= answer["usage"]["completion_tokens"] == SAID.index("at,") + len("at,")
    assert accepted + rejected > accepted


def test_a_server_that_does_not_guess_counts_none(http: httpx.Client) -> None:
    assert counted(answered(http, chat(SAID))) == (0, 0)
    assert metric(http.get("/metrics").text, "vllm:spec_decode_num_draft_tokens_total") == 0
