"""Runs an agent of OpenAI's SDK, whole and streamed, over responses and chats.

Usage: `python openai_agents_client.py ROOT`.
"""

import asyncio
import sys

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

QUESTION = "What is the weather in Paris?"
ANSWER = "The temperature is 21 and the condition is sunny."
cities: list[str] = []


def current_weather(city: str) -> str:
    """Get the current weather"""
    cities.append(city)
    return '{"temperature": 21, "condition": "sunny"}'


async def calls_a_tool(kind: type[OpenAIResponsesModel | OpenAIChatCompletionsModel]) -> None:
    model = kind(
        model="ouzel",
        openai_client=AsyncOpenAI(base_url=f"{sys.argv[1]}/v1", api_key="none", max_retries=0),
    )
    settings = ModelSettings(temperature=0)
    agent = Agent(
        name="Reporter",
        model=model,
        model_settings=settings,
        tools=[function_tool(current_weather)],
    )
    assert (await Runner.run(agent, QUESTION)).final_output == ANSWER

    streamed = Runner.run_streamed(agent, QUESTION)
    kinds = {event.type async for event in streamed.stream_events()}
    assert {"raw_response_event", "run_item_stream_event"} <= kinds
    assert streamed.final_output == ANSWER


if __name__ == "__main__":
    set_tracing_disabled(True)
    for kind in (OpenAIResponsesModel, OpenAIChatCompletionsModel):
        asyncio.run(calls_a_tool(kind))
    assert cities == ["Paris"] * 4, cities
