"""Hugging Face's client of text-generation-inference works with /invocations in TGI's form."""

import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError, TextGenerationError

from tests.api.serving import RunningServer


@pytest.fixture
def client(tgi_server: RunningServer) -> InferenceClient:
    return InferenceClient(model=f"{tgi_server.url}/invocations", token="none")


def test_a_text(client: InferenceClient) -> None:
    assert client.text_generation("Hello", max_new_tokens=7) == "HelloHe"


def test_an_answer_has_details(client: InferenceClient) -> None:
    answer = client.text_generation(
        "Hi", max_new_tokens=2, details=True, top_n_tokens=1, seed=3, stop=["x"]
    )
    assert answer.generated_text == "Hi"
    assert answer.details is not None
    assert (answer.details.finish_reason, answer.details.generated_tokens) == ("length", 2)
    assert [
        (token.id, token.text, token.logprob, token.special) for token in answer.details.tokens
    ] == [
        (72, "H", 0.0, False),
        (105, "i", 0.0, False),
    ]


def test_a_stream(client: InferenceClient) -> None:
    assert list(client.text_generation("Hi", max_new_tokens=3, stream=True)) == ["H", "i", "H"]


def test_a_stream_with_details(client: InferenceClient) -> None:
    *_, last = client.text_generation(
        "Hi", max_new_tokens=9, stream=True, details=True, stop=["Hi"]
    )
    assert last.token.text == ""
    assert last.generated_text == ""
    assert last.details is not None
    assert (last.details.finish_reason, last.details.generated_tokens) == ("stop_sequence", 2)
    assert last.details.input_length == 2


def test_errors_are_seen_before_and_within_a_stream(client: InferenceClient) -> None:
    with pytest.raises(HfHubHTTPError, match="424"):
        client.text_generation("Hi", temperature=9)
    with pytest.raises(TextGenerationError, match="scripted failure"):
        list(client.text_generation("ab<|fail|>", stream=True))
