"""What the model is asked in an evaluation, and when an answer is right."""

from __future__ import annotations

import json
from collections.abc import Iterator

from training.demo_model.conversations import SKILLS
from training.demo_model.exchanges import Conversation
from training.demo_model.sampling import Sampler
from training.demo_model.skills_tools import call_text

SEED = 77
ROOM = 120  # tokens that an answer may have beyond the expected one, and as many again as that has
ROWS = [(skill, False) for skill in SKILLS if "drill" not in skill and skill != "long talk"] + [
    ("arithmetic", True),
    ("tool call", True),
    ("repeat", True),
    ("extraction", True),
]


def skill_conversations(
    skill: str, thinking: bool, count: int, held_out: bool
) -> Iterator[Conversation]:
    """The same ones at every call."""
    sampler = Sampler(SEED, held_out=held_out)
    for _ in range(count):
        yield SKILLS[skill][0](sampler, thinking)


def parsed_calls(text: str) -> list[str] | None:
    """The tool calls in an answer in a form that can be compared, or None where one is not JSON."""
    try:
        found = [
            json.loads(part.split("</tool_call>")[0]) for part in text.split("<tool_call>")[1:]
        ]
    except ValueError:
        return None
    return sorted(json.dumps(item, sort_keys=True) for item in found)


def parsed_json(text: str) -> object:
    """The JSON value of an answer, or the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def is_right(item: Conversation, answer: str) -> bool:
    """Whether an answer is what the conversation asked for."""
    expected = item.messages[-1]
    if item.check == "calls":
        return parsed_calls(answer) == parsed_calls(call_text(expected["tool_calls"]))
    if item.check == "json":
        return parsed_json(answer) == parsed_json(expected["content"])
    if item.check == "one_of":
        return answer in {expected["content"], *item.accepted}
    return answer == expected["content"]
