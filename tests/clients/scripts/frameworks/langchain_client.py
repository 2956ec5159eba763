"""Uses LangChain over each API that LangChain and the server share.

Usage: `python langchain_client.py ROOT`.
"""

import sys

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field, SecretStr

ROOT = sys.argv[1]
NONE = SecretStr("none")
MODELS: tuple[BaseChatModel, ...] = (
    ChatOpenAI(model="ouzel", base_url=f"{ROOT}/v1", api_key=NONE, temperature=0, max_retries=0),
    ChatOpenAI(
        model="ouzel",
        base_url=f"{ROOT}/v1",
        api_key=NONE,
        temperature=0,
        max_retries=0,
        use_responses_api=True,
    ),
    ChatAnthropic(model_name="ouzel", base_url=ROOT, api_key=NONE, temperature=0, max_retries=0),
    ChatOllama(model="ouzel", base_url=ROOT, temperature=0),
)


class Guest(BaseModel):
    """A guest."""

    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=99)


@tool
def current_weather(city: str) -> str:
    """Get the current weather"""
    return '{"temperature": 21, "condition": "sunny"}'


def streams_the_answer_that_comes_whole(model: BaseChatModel) -> None:
    streamed = "".join(str(piece.text) for piece in model.stream("Hello!"))
    assert streamed
    assert streamed == model.invoke("Hello!").text


def calls_a_tool(model: BaseChatModel) -> None:
    agent = create_agent(model, [current_weather])
    *_, called, result, said = agent.invoke(
        {"messages": [HumanMessage("What is the weather in Paris?")]}
    )["messages"]
    assert [(call["name"], call["args"]) for call in called.tool_calls] == [
        ("current_weather", {"city": "Paris"})
    ]
    assert result.content == current_weather.invoke({"city": "Paris"})
    assert said.text == "The temperature is 21 and the condition is sunny.", said


def gets_an_output_of_a_type(model: BaseChatModel) -> None:
    assert isinstance(model.with_structured_output(Guest).invoke("Who comes?"), Guest)


if __name__ == "__main__":
    for model in MODELS:
        streams_the_answer_that_comes_whole(model)
        calls_a_tool(model)
        gets_an_output_of_a_type(model)
