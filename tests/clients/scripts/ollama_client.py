"""Uses a server as a user of `ollama` does.

Usage: `python ollama_client.py ROOT`.
"""

import json
import sys
from collections.abc import Callable

import ollama

QUESTION = "What is the weather in Paris?"
WEATHER = '{"temperature": 21, "condition": "sunny"}'
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["name", "age"],
}
GREEDY = {"temperature": 0, "num_predict": 60}
client = ollama.Client(host=sys.argv[1], trust_env=False)


def get_weather(city: str) -> str:
    """Get the current weather

    Args:
        city: The city
    """
    return WEATHER


def asks_what_there_is() -> None:
    assert [model.model for model in client.list().models] == ["ouzel:latest"]
    assert [model.model for model in client.ps().models] == ["ouzel:latest"]
    shown = client.show("ouzel")
    assert shown.capabilities is not None and {"completion", "tools"} <= set(shown.capabilities)
    assert shown.modelinfo is not None and 65536 in shown.modelinfo.values()


def chats() -> None:
    hello = [{"role": "user", "content": "Hello!"}]
    whole = client.chat("ouzel", hello, options=GREEDY)
    pieces = list(client.chat("ouzel", hello, options=GREEDY, stream=True))
    assert whole.message.content
    assert "".join(piece.message.content or "" for piece in pieces) == whole.message.content
    for last in (whole, pieces[-1]):
        assert last.done and last.done_reason == "stop"
        assert last.eval_count and last.prompt_eval_count and last.total_duration
    assert not any(piece.done for piece in pieces[:-1])


def calls_a_tool_and_goes_on() -> None:
    messages: list[object] = [{"role": "user", "content": QUESTION}]
    asked = client.chat("ouzel", messages, tools=[get_weather], options=GREEDY)
    [call] = asked.message.tool_calls or []
    assert (call.function.name, call.function.arguments) == ("get_weather", {"city": "Paris"})
    messages += [asked.message, {"role": "tool", "tool_name": "get_weather", "content": WEATHER}]
    answer = client.chat("ouzel", messages, tools=[get_weather], options=GREEDY).message
    assert answer.content == "The temperature is 21 and the condition is sunny.", answer
    streamed = list(
        client.chat("ouzel", messages[:1], tools=[get_weather], options=GREEDY, stream=True)
    )
    assert [c.function for piece in streamed for c in piece.message.tool_calls or []] == [
        call.function
    ]


def generates() -> None:
    whole = client.generate("ouzel", "Hello!", options=GREEDY)
    pieces = list(client.generate("ouzel", "Hello!", options=GREEDY, stream=True))
    assert whole.response
    assert "".join(piece.response for piece in pieces) == whole.response
    assert pieces[-1].done_reason == "stop"


def gets_an_object() -> None:
    said = client.chat(
        "ouzel", [{"role": "user", "content": "Who are you?"}], format=SCHEMA, options=GREEDY
    )
    assert set(json.loads(said.message.content or "")) == {"name", "age"}
    begun = client.generate("ouzel", "Hello!", format="json", options=GREEDY).response
    assert begun.lstrip().startswith("{"), begun  # the demo model may not finish its answer


def thinks() -> None:
    said = client.chat(
        "ouzel",
        [{"role": "user", "content": "What is 12 plus 30?"}],
        think=True,
        options={"temperature": 0},
    )
    assert said.message.thinking
    assert "<think>" not in (said.message.content or "")


def is_told_what_is_missing() -> None:
    asked: list[tuple[Callable[[], object], int | None]] = [
        (lambda: client.chat("absent", [{"role": "user", "content": "Hello!"}]), 404),
        (
            lambda: client.chat(
                "ouzel", [{"role": "user", "content": "Hello!"}], options={"temperature": -1}
            ),
            400,
        ),
        (lambda: client.embed("ouzel", "Hello!"), None),
        (lambda: client.pull("another"), None),
    ]
    for ask, status in asked:
        try:
            ask()
        except ollama.ResponseError as error:
            assert error.error, error
            assert error.status_code == status or (
                status is None and 400 <= error.status_code < 600
            ), error
        else:
            raise AssertionError("no error")


if __name__ == "__main__":
    asks_what_there_is()
    chats()
    calls_a_tool_and_goes_on()
    generates()
    gets_an_object()
    thinks()
    is_told_what_is_missing()
