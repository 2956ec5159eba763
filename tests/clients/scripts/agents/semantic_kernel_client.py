"""Uses a server as a user of Semantic Kernel does.

Usage: `python semantic_kernel_client.py ROOT`.
"""

import asyncio
import sys

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
)
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import KernelArguments, kernel_function

WEATHER = '{"temperature": 21, "condition": "sunny"}'
CITIES: list[str] = []


def current_weather(self: object, city: str) -> str:
    CITIES.append(city)
    return WEATHER


class Weather:
    current_weather = kernel_function(
        name="current_weather", description="Get the current weather"
    )(current_weather)


async def main() -> None:
    client = AsyncOpenAI(base_url=f"{sys.argv[1]}/v1", api_key="none", max_retries=0)
    service = OpenAIChatCompletion(ai_model_id="ouzel", async_client=client)
    settings = OpenAIChatPromptExecutionSettings(temperature=0)
    history = ChatHistory()
    history.add_user_message("Hello!")
    whole = await service.get_chat_message_content(history, settings)
    pieces = [
        piece async for piece in service.get_streaming_chat_message_content(history, settings)
    ]
    assert whole is not None
    assert "".join(str(piece) for piece in pieces) == whole.content
    settings = OpenAIChatPromptExecutionSettings(temperature=0)
    agent = ChatCompletionAgent(
        service=service, plugins=[Weather()], arguments=KernelArguments(settings=settings)
    )
    said = await agent.get_response("What is the weather in Paris?")
    assert CITIES == ["Paris"]
    assert str(said) == "The temperature is 21 and the condition is sunny.", said


if __name__ == "__main__":
    asyncio.run(main())
