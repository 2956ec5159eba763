"""Uses a server as a user of Strands does, over chats and over responses.

Usage: `python strands_client.py ROOT`.
"""

import sys

from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel

ACCESS = {"base_url": f"{sys.argv[1]}/v1", "api_key": "none", "max_retries": 0}
WEATHER = '{"temperature": 21, "condition": "sunny"}'
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def current_weather(city: str) -> str:
    return WEATHER


TOOL = tool(
    name="current_weather", description="Get the current weather", inputSchema={"json": SCHEMA}
)(current_weather)


def calls_a_tool(kind: type[OpenAIModel | OpenAIResponsesModel]) -> None:
    model = kind(client_args=ACCESS, model_id="ouzel", params={"temperature": 0})
    agent = Agent(model=model, tools=[TOOL], callback_handler=None)
    said = str(agent("What is the weather in Paris?")).strip()
    calls = [
        block["toolUse"]
        for message in agent.messages
        for block in message["content"]
        if "toolUse" in block
    ]
    assert [(call["name"], call["input"]) for call in calls] == [
        ("current_weather", {"city": "Paris"})
    ], agent.messages
    assert said == "The temperature is 21 and the condition is sunny.", said


if __name__ == "__main__":
    for kind in (OpenAIModel, OpenAIResponsesModel):
        calls_a_tool(kind)
