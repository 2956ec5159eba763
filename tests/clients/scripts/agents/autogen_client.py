"""Uses a server as a user of AutoGen does.

Usage: `python autogen_client.py ROOT`.
"""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallSummaryMessage
from autogen_core.models import ModelInfo, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient

WEATHER = '{"temperature": 21, "condition": "sunny"}'
INFO = ModelInfo(
    vision=False, function_calling=True, json_output=True, family="unknown", structured_output=True
)


async def current_weather(city: str) -> str:
    """Get the current weather"""
    return WEATHER


async def main() -> None:
    client = OpenAIChatCompletionClient(
        model="ouzel",
        base_url=f"{sys.argv[1]}/v1",
        api_key="none",
        model_info=INFO,
        temperature=0,
        max_retries=0,
    )
    *pieces, whole = [
        piece
        async for piece in client.create_stream([UserMessage(content="Hello!", source="user")])
    ]
    assert whole.content == "".join(pieces)
    agent = AssistantAgent(
        "weather", model_client=client, tools=[current_weather], system_message=None
    )
    result = await agent.run(task="What is the weather in Paris?")
    said = result.messages[-1]
    assert isinstance(said, ToolCallSummaryMessage), result.messages
    assert said.content == WEATHER
    assert [(call.name, call.arguments) for call in said.tool_calls] == [
        ("current_weather", '{"city": "Paris"}')
    ]
    await client.close()


if __name__ == "__main__":
    asyncio.run(main())
