"""Uses the parts of `anthropic` for agents: tool runners, message threads, context edits.

Usage: `python anthropic_agents_client.py ROOT`.
"""

import json
import sys
from typing import Any, Literal  # JSON, and the package's types

import anthropic
from anthropic import beta_tool
from anthropic.types.beta import BetaMessage, BetaMessageTokensCount
from pydantic import BaseModel, TypeAdapter

ROOT = sys.argv[1]
QUESTION: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
HELLO: Any = [{"role": "user", "content": "Hello!"}]
SUNNY = "The temperature is 21 and the condition is sunny."
FIELDS: Any = {"model": "ouzel", "max_tokens": 100}
requests: list[Any] = []  # request bodies that the package has sent


def remember(request: Any) -> None:
    if request.url.path.endswith("/messages"):
        requests.append(json.loads(request.content))


http_client = anthropic.DefaultHttpxClient(event_hooks={"request": [remember]})
client = anthropic.Anthropic(base_url=ROOT, api_key="none", max_retries=0, http_client=http_client)


@beta_tool  # type: ignore[untyped-decorator]  # the package is not here
def get_weather(city: str) -> str:
    """Get the current weather

    Args:
        city: The city.
    """
    return json.dumps({"temperature": 21, "condition": "sunny"})


def strictly(kind: Any, text: str | bytes) -> Any:
    return TypeAdapter(kind).validate_json(text, strict=True)


def join_text(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def sent_threads() -> list[Any]:
    sent = [(body.get("thread") or {}).get("type") for body in requests]
    requests.clear()
    return sent


def a_tool_runner_runs_in_a_thread_that_the_server_holds() -> None:
    runner = client.beta.messages.tool_runner(**FIELDS, messages=QUESTION, tools=[get_weather])
    assert join_text(runner.until_done()) == SUNNY
    assert [len(body["messages"]) for body in requests] == [1, 1]
    assert sent_threads() == ["create", "continue"]
    runner = client.beta.messages.tool_runner(
        **FIELDS, messages=QUESTION, tools=[get_weather], stream=True
    )
    assert [join_text(stream.get_final_message()) for stream in runner][-1] == SUNNY
    assert sent_threads() == ["create", "continue"]
    runner = client.beta.messages.tool_runner(
        **FIELDS, messages=QUESTION, tools=[get_weather], thread=False
    )
    assert join_text(runner.until_done()) == SUNNY
    assert sent_threads() == [None, None]


@beta_tool  # type: ignore[untyped-decorator]
def get_time(city: str) -> str:
    """Get the time

    Args:
        city: The city.
    """
    return "noon"


def a_tool_runner_changes_its_tools() -> None:
    runner = client.beta.messages.tool_runner(**FIELDS, messages=QUESTION, tools=[get_weather])
    next(runner)
    runner.add_tools(get_time)
    next(runner)
    assert "tool_addition" in json.dumps(requests)
    requests.clear()


class Choice(BaseModel):
    age: Literal[1, 2, 3]


def a_thread_is_held_by_the_server() -> None:
    thread = client.beta.messages.thread(**FIELDS, tools=[get_weather])
    asked = thread.send(*QUESTION)
    [call] = [block for block in asked.content if block.type == "tool_use"]
    result: Any = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": get_weather.call(call.input),
    }
    with thread.stream({"role": "user", "content": [result]}) as stream:
        assert join_text(stream.get_final_message()) == SUNNY
    fork = thread.fork()
    assert join_text(thread.send(*HELLO)) == join_text(fork.send(*HELLO))
    assert sent_threads() == ["create", "continue", "continue", "create"]
    assert thread.previous_message_id is not None
    parsed = client.beta.messages.thread(**FIELDS, output_format=Choice).parse(*HELLO)
    assert isinstance(parsed.parsed_output, Choice)
    requests.clear()


def a_thread_that_is_gone_is_told_by_its_cause() -> None:
    gone: Any = {"type": "continue", "previous_message_id": "msg_gone"}
    try:
        client.beta.messages.create(**FIELDS, messages=HELLO, thread=gone)
    except anthropic.NotFoundError as error:
        assert (error.error_code, type(error).__name__) == (
            "thread_not_found",
            "ThreadNotFoundError",
        )
    else:
        raise AssertionError("there was no such thread")


def old_results_leave_the_prompt() -> None:
    call: Any = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "get_weather",
        "input": {"city": "Rome"},
    }
    result: Any = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "cold " * 100}
    messages = [
        {"role": "user", "content": "What is the weather in Rome?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "It is cold."},
        *QUESTION,
    ]
    edit: Any = {"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 0}}
    edits: Any = {"edits": [edit | {"trigger": {"type": "input_tokens", "value": 100}}]}
    fields: Any = {
        "messages": messages,
        "tools": [get_weather.to_dict()],
        "context_management": edits,
    }
    text = client.beta.messages.with_raw_response.create(**FIELDS, **fields).text()
    managed = strictly(BetaMessage, text).context_management
    assert managed is not None
    [applied] = managed.applied_edits
    text = client.beta.messages.with_raw_response.count_tokens(model="ouzel", **fields).text()
    counted = strictly(BetaMessageTokensCount, text)
    assert counted.context_management is not None
    cleared = counted.context_management.original_input_tokens - counted.input_tokens
    assert (applied.type, applied.cleared_tool_uses) == (edit["type"], 1)
    assert applied.cleared_input_tokens == cleared > 50
    with client.beta.messages.stream(**FIELDS, **fields) as stream:
        assert stream.get_final_message().context_management == managed


if __name__ == "__main__":
    a_tool_runner_runs_in_a_thread_that_the_server_holds()
    a_tool_runner_changes_its_tools()
    a_thread_is_held_by_the_server()
    a_thread_that_is_gone_is_told_by_its_cause()
    old_results_leave_the_prompt()
