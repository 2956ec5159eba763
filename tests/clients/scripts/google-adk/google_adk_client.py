"""Runs an agent of Google's ADK through LiteLLM, whole and streamed.

Usage: `python google_adk_client.py ROOT`.
"""

import asyncio
import sys

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types


def current_weather(city: str) -> str:
    """Get the current weather"""
    return '{"temperature": 21, "condition": "sunny"}'


async def calls_a_tool(mode: StreamingMode) -> None:
    model = LiteLlm(
        model="openai/ouzel",
        api_base=f"{sys.argv[1]}/v1",
        api_key="none",
        temperature=0,
        max_tokens=100,
    )
    runner = InMemoryRunner(
        LlmAgent(name="reporter", model=model, tools=[current_weather]), app_name="weather"
    )
    session = await runner.session_service.create_session(app_name="weather", user_id="user")
    question = types.UserContent("What is the weather in Paris?")
    events = [
        event
        async for event in runner.run_async(
            user_id="user",
            session_id=session.id,
            new_message=question,
            run_config=RunConfig(streaming_mode=mode),
        )
    ]

    calls = [call for event in events if not event.partial for call in event.get_function_calls()]
    assert [(call.name, call.args) for call in calls] == [("current_weather", {"city": "Paris"})], (
        events
    )
    [result] = [result for event in events for result in event.get_function_responses()]
    assert result.response
    assert events[-1].content and events[-1].content.parts and events[-1].content.parts[-1].text


if __name__ == "__main__":
    for mode in (StreamingMode.NONE, StreamingMode.SSE):
        asyncio.run(calls_a_tool(mode))
