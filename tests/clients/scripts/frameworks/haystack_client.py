"""Uses a server as a user of Haystack does, over chats and over responses.

Usage: `python haystack_client.py ROOT`.
"""

import sys

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage, StreamingChunk
from haystack.tools import Tool
from haystack.utils import Secret

Generator = type[OpenAIChatGenerator] | type[OpenAIResponsesChatGenerator]
SETTINGS = {"model": "ouzel", "api_base_url": f"{sys.argv[1]}/v1", "max_retries": 0}


PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = '{"temperature": 21, "condition": "sunny"}'
TOOL = Tool("current_weather", "Get the current weather", PARAMETERS, function=lambda city: WEATHER)


def streams_the_answer_that_comes_whole(kind: Generator) -> None:
    pieces: list[StreamingChunk] = []
    generator = kind(
        api_key=Secret.from_token("none"), generation_kwargs={"temperature": 0}, **SETTINGS
    )
    hello = [ChatMessage.from_user("Hello!")]
    [streamed] = generator.run(hello, streaming_callback=pieces.append)["replies"]
    [whole] = generator.run(hello)["replies"]
    assert whole.text
    assert "".join(piece.content for piece in pieces) == streamed.text == whole.text


def calls_a_tool(kind: Generator) -> None:
    generator = kind(
        api_key=Secret.from_token("none"), generation_kwargs={"temperature": 0}, **SETTINGS
    )
    agent = Agent(chat_generator=generator, tools=[TOOL])
    *_, called, _, said = agent.run([ChatMessage.from_user("What is the weather in Paris?")])[
        "messages"
    ]
    [call] = called.tool_calls
    assert (call.tool_name, call.arguments) == ("current_weather", {"city": "Paris"})
    assert said.text == "The temperature is 21 and the condition is sunny.", said


if __name__ == "__main__":
    for kind in (OpenAIChatGenerator, OpenAIResponsesChatGenerator):
        streams_the_answer_that_comes_whole(kind)
        calls_a_tool(kind)
