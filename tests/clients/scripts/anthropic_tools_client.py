"""Uses the tools of Anthropic's own types in `anthropic`.

Usage: `python anthropic_tools_client.py ROOT`.

Every call is forced, because the demo model was not trained on these tools.
"""

import sys
import tempfile
from typing import Any  # the package's types

import anthropic
from anthropic.tools import BetaLocalFilesystemMemoryTool
from anthropic.types.beta import BetaMessage
from pydantic import TypeAdapter

HELLO: Any = [{"role": "user", "content": "Hello!"}]
FIELDS: Any = {"model": "ouzel", "max_tokens": 1000}
client = anthropic.Anthropic(base_url=sys.argv[1], api_key="none", max_retries=0)


def tools_of_anthropics_types_are_called() -> None:
    screen = {"display_width_px": 1024, "display_height_px": 768}
    tools: list[Any] = [
        {"type": "bash_20250124", "name": "bash"},
        {
            "type": "text_editor_20250728",
            "name": "str_replace_based_edit_tool",
            "max_characters": 10000,
        },
        {"type": "text_editor_20250124", "name": "str_replace_editor"},
        {"type": "memory_20250818", "name": "memory"},
        {"type": "computer_20251124", "name": "computer", "enable_zoom": True, **screen},
    ]
    for tool in tools:
        choice = {"type": "tool", "name": tool["name"]}
        said = client.beta.messages.with_raw_response.create(
            **FIELDS, messages=HELLO, tools=[tool], tool_choice=choice
        )
        message = TypeAdapter(BetaMessage).validate_json(said.text(), strict=True)
        [call] = [block for block in message.content if block.type == "tool_use"]
        first = {"bash": "command", "computer": "action"}.get(tool["name"], "command")
        assert call.name == tool["name"] and (
            isinstance(call.input[first], str) or "INVALID_JSON" in call.input
        )


def the_memory_tool_runs_in_a_runner() -> None:
    """The demo model stores nothing useful, but its calls have the tool's form."""
    with tempfile.TemporaryDirectory() as directory:
        memory = BetaLocalFilesystemMemoryTool(directory)
        choice: Any = {"type": "tool", "name": "memory"}
        runner = client.beta.messages.tool_runner(
            **FIELDS, messages=HELLO, tools=[memory], tool_choice=choice, max_iterations=2
        )
        messages = list(runner)
    assert {
        block.name for message in messages for block in message.content if block.type == "tool_use"
    } == {"memory"}


if __name__ == "__main__":
    tools_of_anthropics_types_are_called()
    the_memory_tool_runs_in_a_runner()
