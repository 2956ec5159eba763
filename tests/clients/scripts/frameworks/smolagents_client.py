"""Uses a server as a user of smolagents does.

Usage: `python smolagents_client.py ROOT`.
"""

import json
import sys

from smolagents import OpenAIModel, tool

MODEL = OpenAIModel(
    "ouzel", api_base=f"{sys.argv[1]}/v1", api_key="none", temperature=0, max_tokens=200
)


def current_weather(city: str) -> str:
    """Get the current weather

    Args:
        city: the city
    """
    return '{"temperature": 21, "condition": "sunny"}'


def streams_the_answer_that_comes_whole() -> None:
    messages = [{"role": "user", "content": "Hello!"}]
    streamed = "".join(piece.content or "" for piece in MODEL.generate_stream(messages))
    assert streamed
    assert streamed == MODEL.generate(messages).content


def calls_a_tool() -> None:
    message = MODEL.generate(
        [{"role": "user", "content": "What is the weather in Paris?"}],
        tools_to_call_from=[tool(current_weather)],
    )
    [call] = message.tool_calls or []
    assert (call.function.name, json.loads(call.function.arguments)) == (
        "current_weather",
        {"city": "Paris"},
    ), call


if __name__ == "__main__":
    streams_the_answer_that_comes_whole()
    calls_a_tool()
