"""POST /api/chat: requests, the model's prompts, and answers, streamed and whole."""

import logging

import httpx
import msgspec
import pytest

from ouzel.api.ollama.chat import OllamaChatRequest
from ouzel.wire.tools import MAX_TOOLS
from tests.api.ollama.lines import (
    STATISTICS,
    Json,
    chat,
    fold_lines,
    read_answer,
    read_error,
    read_last_prompt,
    read_lines,
    remove_times,
)
from tests.api.serving import running_server

ADD: Json = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1e3,\n "b": "é"}}\n</tool_call>'


def test_a_chat_streams_unless_told_otherwise(ollama: httpx.Client) -> None:
    lines = read_lines(ollama.post("/api/chat", json=chat("Hello")))
    *pieces, last = lines
    assert [line["done"] for line in lines] == [False] * len(pieces) + [True]
    assert all(
        line["model"] == "parrot" and str(line["created_at"]).endswith("Z") for line in lines
    )
    assert fold_lines(lines)["message"] == {"role": "assistant", "content": "Hello"}
    assert (last["done_reason"], last["message"]) == ("stop", {"role": "assistant", "content": ""})
    assert (last["prompt_eval_count"], last["eval_count"]) == (
        len("user\nHello\nassistant\n") + 3,
        6,
    )


def test_durations_are_measured_and_add_up(ollama: httpx.Client) -> None:
    answer = read_answer(ollama.post("/api/chat", json=chat("Hello " * 20, stream=False)))
    total, load, prompt, output = (answer[name] for name in STATISTICS)
    assert isinstance(total, int) and isinstance(prompt, int) and isinstance(output, int)
    assert load > 0 and prompt > 0 and output > 0
    assert prompt + output <= total


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"options": {"num_predict": 3}},
        {"options": {"stop": ["l"]}},
        {"logprobs": True},
        {"logprobs": True, "top_logprobs": 2},
        {"tools": [ADD]},
    ],
)
@pytest.mark.parametrize(
    "said", ["Hello", f"<think>\nHm.\n</think>\n\nI see. {CALL}", f"{CALL}\n{CALL}"]
)
def test_a_whole_answer_is_its_stream_folded(ollama: httpx.Client, said: str, fields: Json) -> None:
    lines = read_lines(ollama.post("/api/chat", json=chat(said, **fields)))
    answer = read_answer(ollama.post("/api/chat", json=chat(said, stream=False, **fields)))
    streamed_logprobs = [entry for line in lines for entry in line.get("logprobs", [])]
    assert answer.get("logprobs", []) == streamed_logprobs
    assert _remove_ids(remove_times(answer)) == _remove_ids(
        remove_times(
            fold_lines(lines) | ({"logprobs": streamed_logprobs} if streamed_logprobs else {})
        )
    )


def _remove_ids(answer: Json) -> Json:
    message: Json = dict(answer["message"])
    calls = [call["function"] for call in message.pop("tool_calls", [])]
    return answer | {"message": message, "calls": calls}


def test_a_call_is_whole_and_has_its_arguments_as_an_object(ollama: httpx.Client) -> None:
    lines = read_lines(ollama.post("/api/chat", json=chat(f"Wait. {CALL}\n{CALL}", tools=[ADD])))
    message: Json = fold_lines(lines)["message"]
    calls = message["tool_calls"]
    assert isinstance(calls, list)
    assert [call["function"] for call in calls] == [
        {"index": index, "name": "add", "arguments": {"a": 1e3, "b": "é"}} for index in (0, 1)
    ]
    assert len({call["id"] for call in calls}) == 2
    assert str(message["content"]).strip() == "Wait."
    assert lines[-1]["done_reason"] == "stop"


def test_a_call_that_is_cut_is_text_and_not_lost(ollama: httpx.Client) -> None:
    fields = {"tools": [ADD], "options": {"num_predict": 60}}
    said = '<tool_call>\n{"name": "add", "arguments": {"a": "' + "long " * 20 + '"}}\n</tool_call>'
    answer = read_answer(ollama.post("/api/chat", json=chat(said, stream=False, **fields)))
    message: Json = answer["message"]
    assert "tool_calls" not in message
    assert "add" in str(message["content"]) and "long long" in str(message["content"])
    assert answer["done_reason"] == "length"


def test_thinking_stands_apart(ollama: httpx.Client) -> None:
    body = chat("<think>\nHm.\n</think>\n\nYes.", stream=False, think=True)
    assert read_answer(ollama.post("/api/chat", json=body))["message"] == {
        "role": "assistant",
        "content": "Yes.",
        "thinking": "Hm.",
    }


def test_the_template_is_told_not_to_think(ollama: httpx.Client) -> None:
    read_answer(ollama.post("/api/chat", json=chat("Hi", stream=False, think=False)))
    assert read_last_prompt().endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    read_answer(ollama.post("/api/chat", json=chat("Hi", stream=False, think="high")))
    assert read_last_prompt().endswith("<|im_start|>assistant\n")


def test_not_to_think_is_a_hint_for_a_model_that_always_does() -> None:
    template = (
        "{# reasoning #}<|im_start|>user\n{{ messages[-1].content }}<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    with running_server(chat_template=template) as server, server.client() as http:
        answer = read_answer(http.post("/api/chat", json=chat("Hi", think=False, stream=False)))
        assert answer["message"] == {"role": "assistant", "content": "Hi"}


def test_history_has_thinking_calls_and_results(ollama: httpx.Client) -> None:
    messages = [
        {"role": "User", "content": "Add."},
        {
            "role": "assistant",
            "thinking": "Hm.",
            "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}],
        },
        {"role": "tool", "tool_name": "add", "content": "2"},
    ]
    read_answer(
        ollama.post("/api/chat", json=chat("", messages=messages, tools=[ADD], stream=False))
    )
    heard = read_last_prompt()
    assert "<think>\nHm.\n</think>" in heard
    assert '{"name": "add", "arguments": {"a": 1}}' in heard
    assert "<tool_response>\n2\n</tool_response>" in heard


def test_ids_join_calls_and_results() -> None:
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
        "{% for call in m.tool_calls or [] %}"
        "[{{ call.function.name }}{{ call.function.arguments }}{{ call.id }}]{% endfor %}"
        "{{ m.tool_call_id or '' }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    )
    calls: list[Json] = [{"function": {"name": name, "arguments": {}}} for name in ("a", "b")]
    calls.append({"id": "own", "function": {"name": "c"}})
    results = [
        {"role": "tool", "tool_name": name, "content": name} for name in ("b", "a", "c", "d")
    ]
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": calls},
        *results,
    ]
    with (
        running_server(chat_template=template, engine_factory="create_recording_parrot") as server,
        server.client() as http,
    ):
        read_answer(http.post("/api/chat", json=chat("", messages=messages, stream=False)))
    heard = read_last_prompt()
    assert "}call00001]" in heard and "}call00002]" in heard and "own]" in heard
    for name, call_id in (("b", "call00002"), ("a", "call00001"), ("c", "own"), ("d", "")):
        assert f"<|im_start|>tool\n{name}{call_id}<|im_end|>" in heard


def test_an_answer_that_is_begun_is_gone_on_with(ollama: httpx.Client) -> None:
    messages = [{"role": "user", "content": "Once"}, {"role": "assistant", "content": "upon a"}]
    read_answer(
        ollama.post(
            "/api/chat", json=chat("", messages=messages, stream=False, options={"num_predict": 2})
        )
    )
    assert read_last_prompt().endswith("upon a")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"num_predict": 2}, "He"),
        ({"num_predict": -1}, "Hello"),
        ({"num_predict": -2}, "Hello"),
        ({"num_predict": 0}, "Hello"),
        ({"num_predict": 10**6}, "Hello"),
        ({"stop": "l"}, "He"),
        ({"stop": ["o", "e"]}, "H"),
        (
            {
                "seed": -1,
                "temperature": 0.0,
                "top_k": 40,
                "top_p": 0.9,
                "min_p": 0.0,
                "typical_p": 1.0,
            },
            "Hello",
        ),
        ({"repeat_penalty": 1.1, "repeat_last_n": -1, "penalize_newline": True}, "Hello"),
        ({"repeat_penalty": 1.1, "repeat_last_n": 0, "penalize_newline": False}, "Hello"),
        ({"repeat_last_n": 64, "penalize_newline": False, "presence_penalty": 0}, "Hello"),
        ({"repeat_last_n": 64, "repeat_penalty": 1.1, "frequency_penalty": 0.1}, "Hello"),
        ({"mirostat": 0, "mirostat_tau": 5.0, "mirostat_eta": 0.1, "tfs_z": 1.0}, "Hello"),
    ],
)
def test_options_are_honoured(ollama: httpx.Client, fields: Json, said: str) -> None:
    answer = read_answer(ollama.post("/api/chat", json=chat("Hello", stream=False, options=fields)))
    assert answer["message"] == {"role": "assistant", "content": said}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"max_tokens": 2}, "He"),
        ({"max_output_tokens": 2, "temperature": 0.5, "top_p": 0.9, "stop": ["zz"]}, "He"),
        ({"num_predict": 2, "options": None}, "He"),
        ({"num_predict": 2, "options": {"num_predict": None}}, "He"),
        ({"num_predict": 2, "options": {"num_predict": 3}}, "Hel"),
    ],
)
def test_options_may_stand_beside_the_options(
    ollama: httpx.Client, fields: Json, said: str
) -> None:
    answer = read_answer(ollama.post("/api/chat", json=chat("Hello", stream=False, **fields)))
    assert answer["message"]["content"] == said


def test_a_choice_of_tools_is_honoured(ollama: httpx.Client) -> None:
    for choice, is_called in (("auto", True), ("none", False)):
        body = chat(CALL, tools=[ADD], tool_choice=choice, stream=False)
        assert (
            "tool_calls" in read_answer(ollama.post("/api/chat", json=body))["message"]
        ) is is_called


def test_there_may_be_as_many_tools_as_in_the_other_apis() -> None:
    body = chat("Hi", tools=[{"function": {"name": f"f{number}"}} for number in range(MAX_TOOLS)])
    assert len(msgspec.convert(body, OllamaChatRequest).tools or []) == MAX_TOOLS


def test_options_about_the_machine_are_hints(
    ollama: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    hints = {
        "num_ctx": 131072,
        "num_keep": 5,
        "num_batch": 2,
        "num_gpu": 1,
        "main_gpu": 0,
        "low_vram": False,
    }
    hints |= {"use_mmap": True, "use_mlock": False, "numa": False, "num_thread": 8, "f16_kv": True}
    with caplog.at_level(logging.INFO, "ouzel.wire.decode"):
        answer = read_answer(
            ollama.post("/api/chat", json=chat("Hi", stream=False, options=hints, keep_alive="5m"))
        )
    assert answer["message"] == {"role": "assistant", "content": "Hi"}
    logged = " ".join(record.getMessage() for record in caplog.records)
    assert "keep_alive" in logged and all(f"options.{name}" in logged for name in hints)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "load"),
        ({"messages": []}, "load"),
        ({"keep_alive": "5m"}, "load"),
        ({"keep_alive": -1}, "load"),
        ({"keep_alive": 0}, "unload"),
        ({"keep_alive": "0s"}, "unload"),
        ({"keep_alive": 0.0, "messages": None}, "unload"),
    ],
)
def test_a_chat_without_messages_loads_or_unloads_the_model(
    ollama: httpx.Client, fields: Json, reason: str
) -> None:
    answer = read_answer(ollama.post("/api/chat", json={"model": "parrot", **fields}))
    assert (answer["done"], answer["done_reason"]) == (True, reason)
    assert answer["message"] == {"role": "assistant", "content": ""}


@pytest.mark.parametrize(
    "name", ["parrot", "parrot:latest", "org/parrot", "org/parrot:latest", "", None]
)
def test_names_have_a_tag_or_none(ollama: httpx.Client, name: str | None) -> None:
    answer = read_answer(ollama.post("/api/chat", json=chat("Hi", model=name, stream=False)))
    assert answer["model"] == (name or "org/parrot")


@pytest.mark.parametrize("name", ["nobody", "parrot:8b", "org/parrot:latest:latest", ":latest"])
def test_an_unknown_model_is_not_found(ollama: httpx.Client, name: str) -> None:
    assert (
        read_error(ollama.post("/api/chat", json=chat("Hi", model=name)), 404)
        == f"model '{name}' not found"
    )


def test_no_content_type_is_needed(ollama: httpx.Client) -> None:
    body = b'{"model": "parrot", "messages": [{"role": "user", "content": "Hi"}], "stream": false}'
    for headers in ({}, {"content-type": "application/x-www-form-urlencoded"}):
        assert read_answer(ollama.post("/api/chat", content=body, headers=headers))["done"] is True


def test_a_chat_that_does_not_fit_loses_its_oldest_turns(ollama: httpx.Client) -> None:
    turns = [
        {"role": role, "content": f"{n} " + "x" * 900}
        for n in range(4)
        for role in ("user", "assistant")
    ]
    messages = [{"role": "system", "content": "Be."}, *turns, {"role": "user", "content": "Now."}]
    read_answer(ollama.post("/api/chat", json=chat("", messages=messages, stream=False)))
    heard = read_last_prompt()
    assert heard.startswith("<|im_start|>system\nBe.<|im_end|>\n<|im_start|>user\n3 x")
    assert "user\nNow.<|im_end|>" in heard
    refused = ollama.post("/api/chat", json=chat("", messages=messages, truncate=False))
    assert "4096" in read_error(refused, 400)
    assert "4096" in read_error(ollama.post("/api/chat", json=chat("x" * 5000)), 400)


def test_a_form_is_obeyed() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"const": 1}},
        "required": ["a"],
        "additionalProperties": False,
    }
    with running_server(engine_factory="create_grammar_parrot") as server, server.client() as http:
        options = {"temperature": 0, "num_predict": 40}
        for form, said in ((schema, '{"a": 1}'), ("json", '{"b": [2]}'), ("", "Hi")):
            answer = read_answer(
                http.post("/api/chat", json=chat(said, format=form, stream=False, options=options))
            )
            assert answer["message"] == {"role": "assistant", "content": said}
        answer = read_answer(
            http.post("/api/chat", json=chat("no", format=schema, stream=False, options=options))
        )
        assert str(answer["message"]["content"]).startswith("{")
        bad = http.post("/api/chat", json=chat("Hi", format={"type": "nothing"}))
        assert read_error(bad, 400).startswith("format")
