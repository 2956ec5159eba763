"""POST /api/generate: answers to a message, continues a text, or fills in its middle."""

import httpx
import pytest

from tests.api.byte_tokens import byte_tokenizer
from tests.api.ollama.lines import (
    Json,
    fold_lines,
    read_answer,
    read_error,
    read_last_prompt,
    read_lines,
    remove_times,
)
from tests.api.serving import running_server


def prompt(text: str, **fields: object) -> Json:
    return {"model": "parrot", "prompt": text, **fields}


@pytest.mark.parametrize(
    "fields", [{}, {"think": True}, {"raw": True, "options": {"num_predict": 9}}]
)
@pytest.mark.parametrize("said", ["Hello", "<think>\nHm.\n</think>\n\nYes."])
def test_a_whole_answer_is_its_stream_folded(ollama: httpx.Client, said: str, fields: Json) -> None:
    lines = read_lines(ollama.post("/api/generate", json=prompt(said, **fields)))
    answer = read_answer(ollama.post("/api/generate", json=prompt(said, stream=False, **fields)))
    assert remove_times(answer) == remove_times(fold_lines(lines))
    assert all("context" not in line for line in lines[:-1])


def test_a_prompt_is_a_users_message(ollama: httpx.Client) -> None:
    answer = read_answer(
        ollama.post("/api/generate", json=prompt("<think>\nHm.\n</think>\n\nYes.", stream=False))
    )
    assert (answer["response"], answer["thinking"], answer["done_reason"]) == (
        "Yes.",
        "Hm.",
        "stop",
    )
    read_answer(
        ollama.post("/api/generate", json=prompt("Hi", system="Be.", think=False, stream=False))
    )
    assert read_last_prompt().startswith(
        "<|im_start|>system\nBe.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
    )


def test_the_context_of_an_answer_is_gone_on_from(ollama: httpx.Client) -> None:
    first = read_answer(ollama.post("/api/generate", json=prompt("One", stream=False)))
    assert first["context"][-4:] == [*b"One", 257]
    second = read_answer(
        ollama.post("/api/generate", json=prompt("Two", context=first["context"], stream=False))
    )
    assert read_last_prompt().count("<|im_start|>user\n") == 2
    assert "One<|im_end|><|im_start|>user\nTwo<|im_end|>" in read_last_prompt()
    assert second["response"] == "Two"
    assert second["context"][: len(first["context"])] == first["context"]


def test_raw_takes_the_text_as_it_is(ollama: httpx.Client) -> None:
    answer = read_answer(
        ollama.post(
            "/api/generate", json=prompt("abc", raw=True, stream=False, options={"num_predict": 4})
        )
    )
    assert (read_last_prompt(), answer["response"], answer["done_reason"]) == (
        "abc",
        "abca",
        "length",
    )
    assert "context" not in answer


def test_without_a_template_every_prompt_is_raw() -> None:
    setup = running_server(has_chat_template=False, engine_factory="create_recording_parrot")
    with setup as server, server.client() as http:
        answer = read_answer(
            http.post("/api/generate", json=prompt("ab", stream=False, options={"num_predict": 3}))
        )
        assert (read_last_prompt(), answer["response"]) == ("ab", "aba")
        assert read_error(
            http.post("/api/generate", json=prompt("ab", system="x")), 400
        ).startswith("system must not")
        assert http.post("/api/show", json={}).json()["template"] == ""


def test_a_suffix_asks_for_the_middle() -> None:
    tokenizer = byte_tokenizer("<fim_prefix>", "<fim_suffix>", "<fim_middle>")
    with running_server(tokenizer=tokenizer) as server, server.client() as http:
        options = {"num_predict": 6, "ignore_eos": True}
        answer = read_answer(
            http.post(
                "/api/generate", json=prompt("ab", suffix="yz", stream=False, options=options)
            )
        )
        assert (answer["response"], answer["prompt_eval_count"]) == ("abyz", 7)
        assert (
            read_answer(http.post("/api/generate", json=prompt("", suffix="yz", stream=False)))[
                "prompt_eval_count"
            ]
            == 5
        )
        assert http.post("/api/show", json={}).json()["capabilities"] == ["completion", "insert"]


@pytest.mark.parametrize(
    ("fields", "reason"), [({}, "load"), ({"prompt": ""}, "load"), ({"keep_alive": "0m"}, "unload")]
)
def test_nothing_to_answer_loads_or_unloads_the_model(
    ollama: httpx.Client, fields: Json, reason: str
) -> None:
    answer = read_answer(ollama.post("/api/generate", json={"model": "parrot", **fields}))
    assert (answer["response"], answer["done"], answer["done_reason"]) == ("", True, reason)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"template": "{{ .Prompt }}"}, "template must be empty"),
        ({"images": ["aGk="]}, "images must not be given: this model reads no pictures"),
        ({"suffix": "x"}, "suffix: this model has no tokens to fill in the middle with"),
        ({"raw": True, "system": "x"}, "system must not be given with raw"),
        ({"raw": True, "context": [1]}, "context must not be given with raw"),
        ({"raw": True, "think": True}, "think must not be given with raw"),
        ({"context": [72, 260]}, "context[1] must be a token id from 0 to 259, given 260"),
        (
            {"messages": [{"role": "user", "content": "Hi"}]},
            "messages is not a field of this endpoint",
        ),
    ],
)
def test_unsupported_fields_are_refused_by_name(
    ollama: httpx.Client, fields: Json, message: str
) -> None:
    assert read_error(ollama.post("/api/generate", json=prompt("Hi", **fields)), 400).startswith(
        message
    )


def test_a_prompt_that_does_not_fit_is_named(ollama: httpx.Client) -> None:
    response = ollama.post("/api/generate", json=prompt("x" * 5000))
    assert "Please reduce the length of the prompt" in read_error(response, 400)
