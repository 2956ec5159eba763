"""Holds greedy conversations with real chat models over every API.

docs/explanation/conversations.md lists the kinds of requests.

The expected texts are texts that the model says by itself. The document compares some of them with
the texts of llama.cpp and transformers. The servers are `--deterministic`, because by default
a busy machine may decide a near-tie of a greedy answer in another way.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

import httpx
import pytest

from benchmarks.quality.packages import MODELS, find, models_directory
from tests.serve.running import serving

pytestmark = pytest.mark.release(
    "conversations with real models, whose files a command of the benchmarks gets"
)

SERVED = ("--served-model-name", "real", "--kv-cache-gib", "1", "--deterministic")
CHATS = "/v1/chat/completions"
JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Chat:
    """A served chat model."""

    http: httpx.Client
    max_model_len: int

    def post(self, path: str, body: Mapping[str, object]) -> JsonObject:
        response = self.http.post(path, json={"model": "real", **body})
        assert response.status_code == 200, response.text
        answer: JsonObject = response.json()
        return answer

    def ask(self, question: str | list[JsonObject], **fields: object) -> JsonObject:
        """Returns the choice of a greedy chat."""
        body = {"messages": messages(question), "temperature": 0, "max_tokens": 120, **fields}
        answer = self.post(CHATS, body)
        choice: JsonObject = answer["choices"][0]
        return choice | {"usage": answer["usage"]}

    def stream(
        self, question: str | list[JsonObject], **fields: object
    ) -> tuple[str, list[JsonObject], str]:
        """Joins the events of a greedy chat: its text, its calls and its finish reason."""
        body = {
            "model": "real",
            "messages": messages(question),
            "temperature": 0,
            "max_tokens": 120,
            "stream": True,
        }
        text, calls, reason = "", [], ""
        with self.http.stream("POST", CHATS, json=body | fields) as response:
            for line in response.iter_lines():
                if not line.startswith("data: {"):
                    continue
                for choice in json.loads(line.removeprefix("data: "))["choices"]:
                    text += choice["delta"].get("content") or ""
                    for part in choice["delta"].get("tool_calls") or []:
                        if "id" in part:
                            calls.append({"name": part["function"]["name"], "arguments": ""})
                        calls[part["index"]]["arguments"] += part["function"].get("arguments", "")
                    reason = choice["finish_reason"] or reason
        return text, calls, reason


def messages(question: str | list[JsonObject]) -> list[JsonObject]:
    return [{"role": "user", "content": question}] if isinstance(question, str) else question


def serve(name: str, cache_dir: Path) -> Iterator[Chat]:
    """Starts a server of the real model.

    Raises NotFetched, which fails the test, if the model's file is missing; the error has the
    command that fetches the file.
    """
    with (
        serving(
            str(find(MODELS[name], models_directory())), *SERVED, cache_dir=cache_dir
        ) as server,
        httpx.Client(base_url=server.root, timeout=None) as http,
    ):
        [model] = http.get("/v1/models").json()["data"]
        yield Chat(http, model["max_model_len"])


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chat]:
    yield from serve("qwen2.5-coder-0.5b", tmp_path_factory.mktemp("qwen"))


@pytest.fixture(scope="module")
def smollm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chat]:
    yield from serve("smollm2-135m", tmp_path_factory.mktemp("smollm"))


@pytest.fixture(params=["qwen", "smollm"])
def chat(request: pytest.FixtureRequest) -> Chat:
    found: Chat = request.getfixturevalue(request.param)
    return found


# Texts

HELLO = "Hello! Who are you?"
CODE = "Write a Python function that returns the sum of a list of numbers."


def test_a_greeting_is_answered_and_ends(chat: Chat) -> None:
    choice = chat.ask(HELLO)
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"].strip()
    assert "<|im_" not in choice["message"]["content"]


def test_code_is_written_in_a_block_that_python_compiles(chat: Chat) -> None:
    choice = chat.ask(CODE, max_tokens=300)
    blocks = re.findall(r"```python\n(.*?)```", choice["message"]["content"], re.S)
    namespace: JsonObject = {}
    exec(compile(blocks[0], "answer", "exec"), namespace)
    [function] = [
        value for name, value in namespace.items() if callable(value) and not name.startswith("_")
    ]
    assert function([1, 2, 3]) == 6


NAME = [
    {"role": "user", "content": "My name is Ada. Remember it."},
    {"role": "assistant", "content": "Nice to meet you, Ada."},
    {"role": "user", "content": "What is my name?"},
]


def test_earlier_turns_count(chat: Chat) -> None:
    """Asks SmolLM2 for one of three names.

    In its own words, a rounding decides whether it tells the name.
    """
    choice = chat.ask(NAME, structured_outputs={"choice": ["Bob", "Eve", "Ada"]})
    assert choice["message"]["content"] == "Ada"


def test_a_name_of_an_earlier_turn_is_told(qwen: Chat) -> None:
    assert "Ada" in qwen.ask(NAME)["message"]["content"]


def test_a_stop_string_ends_the_answer_before_it(chat: Chat) -> None:
    choice = chat.ask("Count from 1 to 10, separated by commas.", stop=["5"])
    assert choice["message"]["content"].startswith("1, 2, 3, 4")
    assert "5" not in choice["message"]["content"]
    assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize("question", [HELLO, CODE])
def test_a_stream_says_the_same_as_the_whole_answer(question: str, chat: Chat) -> None:
    whole = chat.ask(question)
    text, calls, reason = chat.stream(question)
    assert (text, calls, reason) == (whole["message"]["content"], [], whole["finish_reason"])


def test_every_api_gives_the_same_answer(chat: Chat) -> None:
    expected = chat.ask(HELLO)["message"]["content"]
    response = chat.post(
        "/v1/responses", {"input": HELLO, "temperature": 0, "max_output_tokens": 120}
    )
    assert [part["text"] for item in response["output"] for part in item["content"]] == [expected]
    turns = {"messages": messages(HELLO)}
    message = chat.post("/v1/messages", turns | {"temperature": 0, "max_tokens": 120})
    assert [part["text"] for part in message["content"]] == [expected]
    options = {"temperature": 0, "num_predict": 120}
    assert (
        chat.post("/api/chat", turns | {"stream": False, "options": options})["message"]["content"]
        == expected
    )


def test_a_long_answer_without_a_limit_ends_by_itself(chat: Chat) -> None:
    choice = chat.ask("Count from 1 to 100, one number on each line.", max_tokens=None)
    assert choice["finish_reason"] == "stop"
    # A near-tie decides whether SmolLM2 ends after 10 or after 20 lines.
    assert choice["usage"]["completion_tokens"] > 40


# Forms

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def test_an_answer_has_the_form_of_a_schema(chat: Chat) -> None:
    form = {
        "type": "json_schema",
        "json_schema": {"name": "person", "schema": PERSON, "strict": True},
    }
    choice = chat.ask(
        "Extract name and age: Ada is 36 years old. Answer in JSON.", response_format=form
    )
    assert json.loads(choice["message"]["content"]) == {"name": "Ada", "age": 36}


def test_an_answer_is_a_json_object(chat: Chat) -> None:
    question = "Give me a JSON object with the keys city and country for Paris."
    choice = chat.ask(question, response_format={"type": "json_object"})
    assert json.loads(choice["message"]["content"]) == {"city": "Paris", "country": "France"}


def test_an_answer_matches_a_regular_expression(chat: Chat) -> None:
    question = "What is the date of Christmas 2024 in ISO format?"
    choice = chat.ask(question, structured_outputs={"regex": r"\d{4}-\d{2}-\d{2}"})
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", choice["message"]["content"])


def test_an_answer_is_one_of_the_choices(chat: Chat) -> None:
    choice = chat.ask(
        "Is the sky blue or green? One word.", structured_outputs={"choice": ["blue", "green"]}
    )
    assert choice["message"]["content"] == "blue"


# Contexts


def document(num_lines: int) -> str:
    lines = [
        f"Line {number}: the quick brown fox jumps over the lazy dog."
        for number in range(1, num_lines + 1)
    ]
    return "\n".join(["The secret word is marzipan.", *lines])


def test_a_prompt_of_nearly_8k_tokens_is_read_whole(chat: Chat) -> None:
    question = f"{document(480)}\nWhat is the secret word at the beginning of the text above?"
    choice = chat.ask(question, max_tokens=40)
    assert 7000 < choice["usage"]["prompt_tokens"] < 8192
    assert choice["message"]["content"].strip()


def test_a_prompt_beyond_the_limit_is_refused(smollm: Chat) -> None:
    body = {"model": "real", "messages": messages(document(700))}
    response = smollm.http.post(CHATS, json=body)
    assert (response.status_code, smollm.max_model_len) == (400, 8192)
    assert response.json()["error"]["code"] == "context_length_exceeded"


# Tools


def function(name: str, description: str) -> JsonObject:
    parameters = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    }
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOLS = [
    function("get_weather", "Get the current weather of a city."),
    function("get_time", "Get the current time in a city."),
]
WEATHER = "What is the weather in Paris?"


def get_calls(choice: JsonObject) -> list[tuple[str, object]]:
    calls = choice["message"].get("tool_calls") or []
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


@pytest.mark.parametrize(
    ("tool_choice", "name"),
    [
        ("auto", "get_weather"),
        ("required", "get_weather"),
        ({"type": "function", "function": {"name": "get_time"}}, "get_time"),
    ],
    ids=["auto", "required", "named"],
)
def test_a_tool_is_called_and_streamed_alike(tool_choice: object, name: str, qwen: Chat) -> None:
    choice = qwen.ask(WEATHER, tools=TOOLS, tool_choice=tool_choice)
    assert get_calls(choice) == [(name, {"city": "Paris"})]
    assert choice["finish_reason"] == "tool_calls"
    _, streamed, reason = qwen.stream(WEATHER, tools=TOOLS, tool_choice=tool_choice)
    assert streamed == [
        {key: call["function"][key] for key in ("name", "arguments")}
        for call in choice["message"]["tool_calls"]
    ]
    assert reason == "tool_calls"


def test_no_tool_is_called_where_none_may_be(qwen: Chat) -> None:
    choice = qwen.ask(WEATHER, tools=TOOLS, tool_choice="none")
    assert get_calls(choice) == []
    assert choice["message"]["content"].strip()


def test_a_question_about_two_cities_makes_calls_of_cities_in_it(qwen: Chat) -> None:
    calls = qwen.ask("What is the weather in Paris and in London?", tools=TOOLS)
    assert {name for name, _ in get_calls(calls)} == {"get_weather"}


def test_at_most_one_call_where_parallel_calls_are_off(qwen: Chat) -> None:
    question = "What is the weather in Paris and in London?"
    assert (
        len(
            get_calls(
                qwen.ask(question, tools=TOOLS, tool_choice="required", parallel_tool_calls=False)
            )
        )
        == 1
    )


def test_the_result_of_a_call_reaches_the_answer(qwen: Chat) -> None:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
    }
    turns: list[JsonObject] = [
        {"role": "user", "content": WEATHER},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": '{"temperature": 17, "sky": "rain"}'},
    ]
    assert "17" in qwen.ask(turns, tools=TOOLS)["message"]["content"]


def test_tools_are_refused_where_the_chat_template_has_none(smollm: Chat) -> None:
    response = smollm.http.post(
        CHATS, json={"model": "real", "messages": messages(WEATHER), "tools": TOOLS}
    )
    assert response.status_code == 400
    assert response.json()["error"]["message"] == "tools: this model's chat template has no tools"
