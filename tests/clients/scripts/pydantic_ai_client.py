"""Uses a server as a user of pydantic-ai does, over responses and over chats.

Usage: `python pydantic_ai_client.py ROOT`.
"""

import sys

from pydantic import BaseModel, Field
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

PROVIDER = OpenAIProvider(base_url=f"{sys.argv[1]}/v1", api_key="none")


class Guest(BaseModel):
    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=99)


def get_weather(city: str) -> str:
    """Get the current weather"""
    return '{"temperature": 21, "condition": "sunny"}'


def add(a: int, b: int) -> int:
    """Add two numbers"""
    return a + b


def uses_two_tools_in_one_conversation(kind: type[OpenAIChatModel | OpenAIResponsesModel]) -> None:
    agent = Agent(
        kind("ouzel", provider=PROVIDER),
        tools=[get_weather, add],
        model_settings={"temperature": 0},
    )
    first = agent.run_sync("What is the weather in Paris?")
    assert first.output == "The temperature is 21 and the condition is sunny.", first.output
    second = agent.run_sync("What is 12 plus 30?", message_history=first.all_messages())
    assert second.output == "The result is 42.", second.output
    streamed = agent.run_stream_sync("Hello!")
    assert "".join(streamed.stream_text(delta=True))


def gets_an_output_of_a_type(kind: type[OpenAIChatModel | OpenAIResponsesModel]) -> None:
    agent = Agent(
        kind("ouzel", provider=PROVIDER), output_type=Guest, model_settings={"temperature": 0}
    )
    assert isinstance(agent.run_sync("Who comes?").output, Guest)


if __name__ == "__main__":
    for kind in (OpenAIResponsesModel, OpenAIChatModel):
        uses_two_tools_in_one_conversation(kind)
        gets_an_output_of_a_type(kind)
