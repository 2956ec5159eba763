"""Answers count the accepted proposals, and requests have fields about proposals."""

import json
from collections.abc import Iterator
from typing import Any  # JSON

import httpx
import pytest

from ouzel.checkpoint.model_files import SamplingDefaults
from ouzel.types.engine_request import SpeculationParams
from tests.api.engines import received_hints
from tests.api.requests import Json, chat, read_error, read_events, sum_metric
from tests.api.serving import running_server

SAID = "the cat sat on the mat, the cat sat on the mat, the cat sat on the mat"


@pytest.fixture(scope="module")
def guessing() -> Iterator[httpx.Client]:
    """Yields a client of a server that finds most proposals for its answers in the prompt."""
    with (
        running_server(engine_factory="create_speculating_parrot") as server,
        server.client() as http,
    ):
        yield http


def post(http: httpx.Client, body: Json, path: str = "chat/completions") -> Any:
    response = http.post(f"/v1/{path}", json={"model": "parrot", "temperature": 0} | body)
    assert response.status_code == 200, response.text
    return response.json()


def count_proposals(answer: Any) -> tuple[int, int]:
    """Returns the accepted and rejected tokens of an answer's usage."""
    details = answer["usage"]["completion_tokens_details"]
    return details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]


def text(answer: Any) -> str:
    content: str = answer["choices"][0]["message"]["content"]
    return content


def test_usage_counts_accepted_and_rejected_tokens_of_a_prediction(
    guessing: httpx.Client,
) -> None:
    before = guessing.get("/metrics").text
    answer = post(guessing, chat(SAID))
    after = guessing.get("/metrics").text

    accepted, rejected = count_proposals(answer)
    assert text(answer) == SAID
    assert len(SAID) // 2 < accepted < answer["usage"]["completion_tokens"]
    names = (
        "vllm:spec_decode_num_accepted_tokens_total",
        "vllm:spec_decode_num_draft_tokens_total",
    )
    grown = [sum_metric(after, name) - sum_metric(before, name) for name in names]
    assert grown == [accepted, accepted + rejected]


def test_a_stream_counts_them_too(guessing: httpx.Client) -> None:
    body = chat(SAID, temperature=0, stream=True, stream_options={"include_usage": True})
    *chunks, end = read_events(guessing.post("/v1/chat/completions", json=body))

    last = json.loads(chunks[-1])
    assert end == "[DONE]"
    assert len(SAID) // 2 < count_proposals(last)[0] < last["usage"]["completion_tokens"]


def test_choices_and_prompts_are_summed(guessing: httpx.Client) -> None:
    one, several = (post(guessing, chat(SAID, n=n)) for n in (1, 3))
    assert count_proposals(several)[0] > 2 * count_proposals(one)[0]
    prompt = f"<|im_start|>user\n{SAID}<|im_end|>\n<|im_start|>assistant\n"
    prompts = post(guessing, {"prompt": [prompt, prompt], "max_tokens": len(SAID)}, "completions")
    assert count_proposals(prompts)[0] > len(SAID)


def test_proposals_behind_a_stop_string_are_not_counted_as_accepted(guessing: httpx.Client) -> None:
    """Proposals go beyond the stop string, because their source does not know it."""
    answer = post(guessing, chat(SAID, stop=["at,"]))

    accepted, rejected = count_proposals(answer)
    assert text(answer) == SAID[: SAID.index("at,")]
    assert accepted <= answer["usage"]["completion_tokens"] == SAID.index("at,") + len("at,")
    assert accepted + rejected > accepted


def test_a_server_that_does_not_guess_counts_none(http: httpx.Client) -> None:
    assert count_proposals(post(http, chat(SAID))) == (0, 0)
    assert sum_metric(http.get("/metrics").text, "vllm:spec_decode_num_draft_tokens_total") == 0


def predicting(content: object) -> Json:
    return {"prediction": {"type": "content", "content": content}}


def test_a_prediction_changes_no_answer_and_is_accepted_as_far_as_it_comes() -> None:
    """Only the prediction can predict this answer: the server ignores prompts of another salt."""
    letters = {"allowed_token_ids": list(range(ord("a"), ord("z") + 1)), "max_tokens": 40}
    with (
        running_server(engine_factory="create_speculating_random_engine") as server,
        server.client() as http,
    ):
        plain = post(http, chat("Hi", **letters, cache_salt="a"))
        foretold = post(http, chat("Hi", **letters, cache_salt="b", **predicting(text(plain))))
        half = predicting(text(plain)[:20] + "0" * 20)
        misled = post(http, chat("Hi", **letters, cache_salt="c", **half))

    assert text(plain) == text(foretold) == text(misled)
    assert (
        count_proposals(plain)[0]
        < 10
        < count_proposals(misled)[0]
        < 30
        < count_proposals(foretold)[0]
    )


@pytest.fixture(scope="module")
def hinted() -> Iterator[httpx.Client]:
    """Yields a client of a server with all sources of proposals."""
    with (
        running_server(engine_factory="create_hint_recording_parrot") as server,
        server.client() as http,
    ):
        yield http


def build_body(path: str) -> Json:
    match path:
        case "completions":
            return {"prompt": "Hi"}
        case "responses":
            return {"input": "Hi"}
        case "standard":
            return {"inputs": "Hi"}
        case _:
            return chat("Hi")


def read_received_hints(http: httpx.Client, path: str, **fields: object) -> SpeculationParams:
    """Posts a request and returns the speculation parameters that the engine receives."""
    received_hints.clear()
    fields = (
        {"parameters": fields | {"max_new_tokens": 2}}
        if path == "standard"
        else fields | {"max_tokens": 2}
    )
    address = {"standard": "/invocations", "lmi": "/invocations", "ovms": "/v3/chat/completions"}
    response = http.post(address.get(path, f"/v1/{path}"), json=build_body(path) | fields)
    assert response.status_code == 200, response.text
    [params] = received_hints
    return params


PATHS = ("chat/completions", "completions", "responses", "standard", "lmi", "ovms")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, SpeculationParams()),
        ({"num_assistant_tokens": 5}, SpeculationParams(max_proposed_tokens=5)),
        ({"num_assistant_tokens": 0}, SpeculationParams(max_proposed_tokens=0)),
        ({"num_assistant_tokens": 64}, SpeculationParams(max_proposed_tokens=64)),
        ({"max_ngram_size": 1}, SpeculationParams(max_ngram_size=1)),
        ({"assistant_confidence_threshold": 0.25}, SpeculationParams(confidence_threshold=0.25)),
        ({"num_assistant_tokens": 3, "num_beams": 2}, SpeculationParams(max_proposed_tokens=3)),
    ],
)
def test_fields_reach_the_engine(
    hinted: httpx.Client, path: str, fields: Json, expected: SpeculationParams, stream: bool
) -> None:
    assert read_received_hints(hinted, path, **fields, stream=stream) == expected


@pytest.mark.parametrize("path", ["chat/completions", "lmi", "ovms"])
@pytest.mark.parametrize(
    ("content", "predicted"),
    [
        ("né", "né".encode()),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], b"ab"),
        ("<|im_end|>", b"<|im_end|>"),
        ("", b""),
        ([], b""),
    ],
)
def test_a_prediction_reaches_the_engine_as_tokens(
    hinted: httpx.Client, path: str, content: object, predicted: bytes
) -> None:
    """Marks in a prediction are plain text, as they are in answers."""
    assert read_received_hints(
        hinted, path, **predicting(content), n=2
    ).predicted_token_ids == list(predicted)


def refusal(http: httpx.Client, path: str, fields: Json) -> tuple[int, str, str]:
    response = http.post(f"/v1/{path}", json=build_body(path) | fields)
    error = read_error(response)
    return response.status_code, error["param"], error["message"]


@pytest.mark.parametrize("path", ["chat/completions", "completions", "responses"])
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_assistant_tokens": -1}, "num_assistant_tokens must be >= 0, given -1"),
        ({"num_assistant_tokens": 65}, "num_assistant_tokens must be <= 64, given 65"),
        ({"num_assistant_tokens": 1.5}, "num_assistant_tokens must be an integer, given 1.5"),
        ({"max_ngram_size": 0}, "max_ngram_size must be >= 1, given 0"),
        (
            {"assistant_confidence_threshold": 1.1},
            "assistant_confidence_threshold must be <= 1.0, given 1.1",
        ),
        (
            {"num_assistant_tokens": 5, "assistant_confidence_threshold": 0.4},
            "assistant_confidence_threshold must not be given beside num_assistant_tokens, "
            "given 0.4",
        ),
    ],
)
def test_a_wrong_value_is_refused(
    hinted: httpx.Client, path: str, fields: Json, message: str
) -> None:
    assert refusal(hinted, path, fields) == (400, message.partition(" ")[0], message)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"num_assistant_tokens": 5},
            "needs --prompt-lookup, --draft-model or --mtp at the start, given 5",
        ),
        ({"max_ngram_size": 3}, "needs --prompt-lookup at the start, given 3"),
        (
            {"assistant_confidence_threshold": 0.5},
            "needs a draft model (--draft-model or --mtp at the start), given 0.5",
        ),
    ],
)
def test_a_server_without_a_source_of_proposals_names_it(
    http: httpx.Client, fields: Json, message: str
) -> None:
    [name] = fields
    assert refusal(http, "chat/completions", fields) == (400, name, f"{name} {message}")


def test_no_guesses_are_had_without_any_way_to_guess(http: httpx.Client) -> None:
    assert text(post(http, chat("Hi", num_assistant_tokens=0))) == "Hi"


def test_a_threshold_needs_a_draft_model_and_nothing_else_does(guessing: httpx.Client) -> None:
    assert text(post(guessing, chat("Hi", num_assistant_tokens=5, max_ngram_size=3))) == "Hi"
    status, param, _ = refusal(
        guessing, "chat/completions", {"assistant_confidence_threshold": 0.5}
    )
    assert (status, param) == (400, "assistant_confidence_threshold")


@pytest.mark.parametrize(
    ("prediction", "param", "message"),
    [
        (
            {"type": "text", "content": "a"},
            "prediction.type",
            'must be one of "content", given "text"',
        ),
        ({"content": "a"}, "prediction.type", "is required"),
        ({"type": "content"}, "prediction.content", "is required"),
        (
            {"type": "content", "content": 3},
            "prediction.content",
            "must be a string or a list, given 3",
        ),
        ("a", "prediction", 'must be an object, given "a"'),
        (
            {"type": "content", "content": [{"type": "image_url", "text": "a"}]},
            "prediction.content[0].type",
            'must be one of "text", given "image_url"',
        ),
    ],
)
def test_a_wrong_prediction_is_refused(
    hinted: httpx.Client, prediction: object, param: str, message: str
) -> None:
    expected = (400, param, f"{param} {message}")
    assert refusal(hinted, "chat/completions", {"prediction": prediction}) == expected


@pytest.mark.parametrize("num_chars", [4096, 10**6])
def test_a_prediction_longer_than_the_context_is_refused(
    hinted: httpx.Client, num_chars: int
) -> None:
    status, param, message = refusal(hinted, "chat/completions", predicting("a" * num_chars))
    assert (status, param) == (400, "prediction.content")
    assert "maximum context length is 4096 tokens" in message
    assert (
        read_received_hints(
            hinted, "chat/completions", **predicting("a" * 4095)
        ).predicted_token_ids
        == [ord("a")] * 4095
    )


def test_the_request_counts_before_the_models_makers() -> None:
    makers = SamplingDefaults(num_assistant_tokens=7, assistant_confidence_threshold=0.3)
    hinted = running_server(engine_factory="create_hint_recording_parrot", sampling_defaults=makers)
    with hinted as server, server.client() as http:
        assert read_received_hints(http, "completions") == SpeculationParams(
            max_proposed_tokens=7, confidence_threshold=0.3
        )
        fewer = read_received_hints(http, "completions", num_assistant_tokens=2, max_ngram_size=4)
        assert fewer == SpeculationParams(max_proposed_tokens=2, max_ngram_size=4)
        surer = read_received_hints(http, "completions", assistant_confidence_threshold=0.9)
        assert surer == SpeculationParams(confidence_threshold=0.9)


def test_the_makers_defaults_for_a_missing_draft_model_refuse_nothing() -> None:
    makers = SamplingDefaults(num_assistant_tokens=100, assistant_confidence_threshold=0.3)
    with running_server(sampling_defaults=makers) as server, server.client() as http:
        assert text(post(http, chat("Hi"))) == "Hi"


NO_GUESSES = SpeculationParams(max_proposed_tokens=0)


@pytest.mark.parametrize("path", PATHS)
def test_a_request_with_a_seed_is_not_guessed_for(hinted: httpx.Client, path: str) -> None:
    assert read_received_hints(hinted, path, seed=7) == NO_GUESSES
    assert read_received_hints(hinted, path) == SpeculationParams()


@pytest.mark.parametrize(
    "fields",
    [{"num_assistant_tokens": 3}, {"max_ngram_size": 2}, {"assistant_confidence_threshold": 0.5}],
)
def test_unless_it_asks_for_guesses(hinted: httpx.Client, fields: Json) -> None:
    assert read_received_hints(hinted, "chat/completions", seed=7, **fields) == read_received_hints(
        hinted, "chat/completions", **fields
    )
    assert read_received_hints(hinted, "chat/completions", seed=7, **fields) != NO_GUESSES


def test_a_prediction_beside_a_seed_is_a_hint(
    hinted: httpx.Client, guessing: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        assert (
            read_received_hints(hinted, "chat/completions", seed=7, **predicting("Hi"))
            == NO_GUESSES
        )
    assert "taken as hints: prediction (the request has a seed)" in caplog.text
    assert read_received_hints(
        hinted, "chat/completions", seed=7, max_ngram_size=2, **predicting("Hi")
    ).predicted_token_ids

    plain, seeded = (post(guessing, chat(SAID, **fields)) for fields in ({}, {"seed": 7}))
    assert text(plain) == text(seeded)
    assert count_proposals(seeded) == (0, 0) < count_proposals(plain)
