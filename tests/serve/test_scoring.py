"""Scores of prompts by the demo model, as an evaluation harness asks for them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from openai import OpenAI

from tests.serve.running import serving

PROMPTS = ["The capital of France is", "1, 2, 3,", "Question: What is the colour of snow?\nAnswer:"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    with (
        serving(cache_dir=tmp_path_factory.mktemp("cache")) as server,
        OpenAI(base_url=server.url, api_key="none") as client,
    ):
        yield client


def test_several_prompts_have_the_answers_of_lone_prompts_in_streams_too(client: OpenAI) -> None:
    ask = {"model": "ouzel-demo", "temperature": 0, "max_tokens": 12, "n": 2}
    create: Callable[..., Any] = client.completions.create
    alone = [create(prompt=prompt, **ask).choices for prompt in PROMPTS]
    together = create(prompt=PROMPTS, **ask).choices
    texts = [""] * 6
    for chunk in create(prompt=PROMPTS, stream=True, **ask):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert (
        texts
        == [choice.text for choice in together]
        == [choice.text for choices in alone for choice in choices]
    )


@pytest.mark.release("a harness for evaluations that scores continuations")
def test_an_evaluation_harness_scores_a_greedy_continuation_as_greedy(client: OpenAI) -> None:
    for prompt in PROMPTS:
        first = client.completions.create(
            model="ouzel-demo",
            prompt=prompt,
            temperature=0,
            max_tokens=6,
            logprobs=1,
            extra_body={"return_token_ids": True, "ignore_eos": True},
        ).choices[0]
        ids = first.model_extra
        assert ids is not None
        context, continuation = ids["prompt_token_ids"], ids["token_ids"]
        (scored,) = client.completions.create(
            model="ouzel-demo",
            prompt=[context + continuation],
            temperature=0,
            max_tokens=1,
            logprobs=1,
            seed=1234,
            echo=True,
        ).choices
        assert scored.logprobs is not None and first.logprobs is not None
        assert (
            scored.logprobs.token_logprobs is not None and scored.logprobs.top_logprobs is not None
        )
        token_logprobs = scored.logprobs.token_logprobs[len(context) : -1]
        top_logprobs = scored.logprobs.top_logprobs[len(context) : -1]
        # A prefill and single steps round differently in bf16.
        assert token_logprobs == pytest.approx(first.logprobs.token_logprobs, abs=0.15)
        differences = [
            max(top.values()) - own for own, top in zip(token_logprobs, top_logprobs, strict=True)
        ]
        assert max(differences) < 0.15
