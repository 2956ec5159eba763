"""The server offers beam search and best_of, on a real engine with pseudo-random logits."""

import json
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import pytest

from tests.api.byte_tokens import END
from tests.api.requests import Json, chat, read_error, read_events
from tests.api.serving import running_server

PROMPT = {"model": "parrot", "prompt": "añb", "max_tokens": 12}
BEAMS: Json = {"num_beams": 4, "n": 3, "stop_token_ids": [*range(40)], "logprobs": 2}
BEST: Json = {"best_of": 6, "n": 2, "seed": 5, "top_k": 50, "logprobs": 2}


@pytest.fixture(scope="module")
def random_http() -> Iterator[httpx.Client]:
    with running_server(engine_factory="create_random_engine") as server, server.client() as http:
        yield http


def complete(http: httpx.Client, **fields: object) -> dict[str, Any]:
    response = http.post("/v1/completions", json=PROMPT | fields)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def texts(answer: dict[str, Any]) -> list[str]:
    return [choice["text"] for choice in answer["choices"]]


def mean_logprob(choice: dict[str, Any]) -> float:
    token_logprobs: list[float] = choice["logprobs"]["token_logprobs"]
    return sum(token_logprobs) / len(token_logprobs)


@pytest.mark.parametrize(
    "fields", [BEAMS, BEST, BEAMS | {"num_beam_groups": 2, "diversity_penalty": 0.5}]
)
def test_a_folded_stream_is_the_unary_answer(random_http: httpx.Client, fields: Json) -> None:
    unary = complete(random_http, **fields)
    streamed = PROMPT | fields | {"stream": True, "stream_options": {"include_usage": True}}
    *chunks, last = [
        json.loads(event)
        for event in read_events(random_http.post("/v1/completions", json=streamed))[:-1]
    ]

    assert last["usage"] == unary["usage"]
    for expected in unary["choices"]:
        own = [
            choice
            for chunk in chunks
            for choice in chunk["choices"]
            if choice["index"] == expected["index"]
        ]
        assert "".join(choice["text"] for choice in own) == expected["text"]
        assert own[-1]["finish_reason"] == expected["finish_reason"]
        logprobs = [
            value
            for choice in own
            if choice["logprobs"]
            for value in choice["logprobs"]["token_logprobs"]
        ]
        assert logprobs == expected["logprobs"]["token_logprobs"]


def test_the_names_of_vllm_and_transformers_are_the_same_search(random_http: httpx.Client) -> None:
    answers = [
        texts(complete(random_http, **fields))
        for fields in (
            {"num_beams": 3, "num_return_sequences": 3},
            {"use_beam_search": True, "best_of": 3, "n": 3, "temperature": 0},
            {"use_beam_search": True, "n": 3, "length_penalty": 1, "early_stopping": False},
        )
    ]
    assert answers[0] == answers[1] == answers[2]
    assert len(set(answers[0])) == 3


def test_beams_find_a_likelier_text_than_greedy_search(random_http: httpx.Client) -> None:
    fields = {"prompt": "ouzel", "logprobs": 0, "ignore_eos": True, "max_tokens": 6}
    greedy = complete(random_http, temperature=0, **fields)["choices"][0]
    beams = complete(random_http, num_beams=8, n=8, **fields)["choices"]

    means = [mean_logprob(choice) for choice in beams]
    assert means[0] > mean_logprob(greedy)
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize(
    "field", [{"length_penalty": -3.0}, {"early_stopping": True}, {"early_stopping": "never"}]
)
def test_the_end_of_a_beam_search_and_its_ranking_are_options(
    random_http: httpx.Client, field: Json
) -> None:
    fields = {"num_beams": 4, "n": 4, "max_tokens": 30, "stop_token_ids": [*range(120)]}
    assert texts(complete(random_http, **fields, **field)) != texts(
        complete(random_http, **fields, length_penalty=3.0)
    )


def test_a_stop_string_cuts_each_winner(random_http: httpx.Client) -> None:
    fields = {"num_beams": 4, "n": 4, "ignore_eos": True, "max_tokens": 8, "return_token_ids": True}
    whole = complete(random_http, **fields)
    stop = next(letter for letter in whole["choices"][0]["text"][2:] if letter.isascii())
    cut = complete(random_http, **fields, stop=stop)

    assert texts(cut) == [text.partition(stop)[0] for text in texts(whole)]
    assert cut["choices"][0]["finish_reason"] == "stop"
    assert cut["usage"]["completion_tokens"] < whole["usage"]["completion_tokens"] == 4 * 8


def test_best_of_returns_the_most_likely_of_all_samples(random_http: httpx.Client) -> None:
    """The same seed gives the same samples, so a second request can show all of them."""
    fields = {"seed": 5, "top_k": 50, "logprobs": 0, "ignore_eos": True}
    samples = complete(random_http, n=6, **fields)["choices"]
    best = complete(random_http, n=2, best_of=6, **fields)

    ranking = sorted(samples, key=lambda choice: -mean_logprob(choice))
    assert texts(best) == [choice["text"] for choice in ranking[:2]]
    assert [choice["index"] for choice in best["choices"]] == [0, 1]


def test_every_sample_counts_as_usage_and_logprobs_are_shown_only_when_asked_for(
    random_http: httpx.Client,
) -> None:
    answer = complete(random_http, best_of=5, ignore_eos=True)
    assert answer["usage"]["completion_tokens"] == 5 * 12
    assert [choice["logprobs"] for choice in answer["choices"]] == [None]


def test_chat_has_both(random_http: httpx.Client) -> None:
    # the server's parser fails on purpose at "#"
    bans = {
        "logit_bias": {"35": -100},
        "max_tokens": 10,
    }
    for fields in ({"num_beams": 3, "n": 2}, {"best_of": 4, "n": 2, "seed": 1}):
        answer = random_http.post("/v1/chat/completions", json=chat("Hi", **fields, **bans)).json()
        assert [choice["index"] for choice in answer["choices"]] == [0, 1]
        first, second = (choice["message"]["content"] for choice in answer["choices"])
        assert first != second


def test_several_prompts_have_their_own_winners(random_http: httpx.Client) -> None:
    fields = {"num_beams": 3, "n": 2}
    alone = [texts(complete(random_http, prompt=prompt, **fields)) for prompt in ("ab", "cd")]
    assert texts(complete(random_http, prompt=["ab", "cd"], **fields)) == alone[0] + alone[1]


def test_the_end_token_ends_a_beam(random_http: httpx.Client) -> None:
    answer = complete(random_http, num_beams=2, n=2, logit_bias={str(END): 50}, max_tokens=5)
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["text"] == ""


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"num_beams": 9}, "num_beams", "num_beams must be <= 8 in a beam search, given 9"),
        ({"use_beam_search": True, "n": 9}, "n", "n must be <= 8 in a beam search, given 9"),
    ],
)
def test_more_beams_than_a_batch_holds_are_refused(
    random_http: httpx.Client, fields: Json, param: str, message: str
) -> None:
    response = random_http.post("/v1/completions", json=PROMPT | fields)
    assert response.status_code == 400
    assert message in read_error(response)["message"]
    assert read_error(response)["param"] == param
