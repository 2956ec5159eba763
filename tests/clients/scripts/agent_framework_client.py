"""Uses a server as a user of Microsoft's Agent Framework does.

Usage: `python agent_framework_client.py ROOT`.
"""

import asyncio
import sys

from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

ACCESS = {"model": "ouzel", "base_url": f"{sys.argv[1]}/v1", "api_key": "none"}
ANSWER = "The temperature is 21 and the condition is sunny."


def get_weather(city: str) -> str:
    """Get the current weather"""
    return '{"temperature": 21, "condition": "sunny"}'


def add(a: int, b: int) -> str:
    """Add two numbers"""
    return str(a + b)


async def uses_a_tool_twice_in_one_conversation(agent: Agent) -> None:
    session = agent.create_session()
    first = await agent.run("What is the weather in Paris?", session=session)
    assert first.text == ANSWER, first.text
    second = await agent.run("What is the weather in Rome?", session=session)
    assert second.text == ANSWER, second.text
    pieces = [update.text async for update in agent.run("Write a story.", stream=True)]
    assert len(pieces) > 3 and "".join(pieces).startswith("Once upon a time"), pieces


if __name__ == "__main__":
    for client in (OpenAIChatClient(**ACCESS), OpenAIChatCompletionClient(**ACCESS)):
        agent = Agent(client, tools=[get_weather, add], default_options={"temperature": 0})
        asyncio.run(uses_a_tool_twice_in_one_conversation(agent))
