"""Uses a server as a user of DSPy does, over chats and over responses.

Usage: `python dspy_client.py ROOT`.
"""

import json
import sys
from typing import Literal

import dspy

KINDS: tuple[Literal["chat", "responses"], ...] = ("chat", "responses")
FUNCTION = {
    "name": "current_weather",
    "description": "Get the current weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
TOOLS = {
    "chat": {"type": "function", "function": FUNCTION},
    "responses": {"type": "function", **FUNCTION},
}


def predicts(kind: Literal["chat", "responses"]) -> None:
    model = dspy.LM(
        "openai/ouzel",
        api_base=f"{sys.argv[1]}/v1",
        api_key="none",
        model_type=kind,
        temperature=0,
        cache=False,
        num_retries=0,
        max_tokens=200,
    )
    [said] = model("Hello!")
    assert (said if isinstance(said, str) else said["text"]) == "Hello! How can I help you?", said
    [asked] = model("What is the weather in Paris?", tools=[TOOLS[kind]])
    assert isinstance(asked, dict)
    [call] = asked["tool_calls"]
    function = call["function"]
    assert (function["name"], json.loads(function["arguments"])) == (
        "current_weather",
        {"city": "Paris"},
    ), call


if __name__ == "__main__":
    for kind in KINDS:
        predicts(kind)
