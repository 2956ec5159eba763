"""Uses a server as a user of LlamaIndex does.

Usage: `python llama_index_client.py ROOT`.
"""

import asyncio
import sys

from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field

MODEL = OpenAILike(
    model="ouzel",
    api_base=f"{sys.argv[1]}/v1",
    api_key="none",
    is_chat_model=True,
    is_function_calling_model=True,
    should_use_structured_outputs=True,
    temperature=0,
    max_retries=0,
)


class Guest(BaseModel):
    """A guest."""

    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=99)


def current_weather(city: str) -> str:
    """Get the current weather"""
    return '{"temperature": 21, "condition": "sunny"}'


def streams_the_answer_that_comes_whole() -> None:
    messages = [ChatMessage(role="user", content="Hello!")]
    streamed = "".join(str(piece.delta) for piece in MODEL.stream_chat(messages))
    assert streamed
    assert streamed == MODEL.chat(messages).message.content


async def calls_a_tool() -> None:

    handler = FunctionAgent(tools=[current_weather], llm=MODEL).run("What is the weather in Paris?")
    [result] = [
        event async for event in handler.stream_events() if isinstance(event, ToolCallResult)
    ]
    assert (result.tool_name, result.tool_kwargs) == ("current_weather", {"city": "Paris"})
    said = str(await handler)
    assert said == "The temperature is 21 and the condition is sunny.", said


def gets_an_output_of_a_type() -> None:
    guest = (
        MODEL.as_structured_llm(Guest).chat([ChatMessage(role="user", content="Who comes?")]).raw
    )
    assert isinstance(guest, Guest)


if __name__ == "__main__":
    streams_the_answer_that_comes_whole()
    asyncio.run(calls_a_tool())
    gets_an_output_of_a_type()
