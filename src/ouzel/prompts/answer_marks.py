"""Marks that a model writes visibly, as `<tool_call>`, are in its answers when these come back as messages.

There they are the tokens that they were, so that the model reads what it wrote. In every other text they are text; so
are special tokens everywhere, which no answer shows.
"""

from ouzel.prompts.marked_text import StandIns
from ouzel.prompts.messages import Message


def answers_with_stand_ins(messages: list[Message], stand_ins: StandIns) -> list[Message]:
    """`stand_ins` know the visible marks alone."""
    return [
        {**message, "content": _marked(message["content"], stand_ins)}
        if message["role"] == "assistant"
        else message
        for message in messages
    ]


def _marked(content: object, stand_ins: StandIns) -> object:
    if isinstance(content, str):
        return stand_ins.of_marks(content)
    assert isinstance(content, list)
    return [
        {**part, "text": stand_ins.of_marks(part["text"])} if "text" in part else part
        for part in content
    ]
