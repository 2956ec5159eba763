"""Marks that a model writes visibly, as `<tool_call>`, are in its answers when these come back as messages.

There they are the tokens that they were, so that the model reads what it wrote. In every other text they are text; so
are special tokens everywhere, which no answer shows.
"""

from ouzel.prompts.marked_text import Brackets
from ouzel.prompts.messages import Message


def bracket_answers(messages: list[Message], brackets: Brackets) -> list[Message]:
    """`brackets` know the visible marks alone."""
    return [
        {**message, "content": _bracketed(message["content"], brackets)} if message["role"] == "assistant" else message
        for message in messages
    ]


def _bracketed(content: object, brackets: Brackets) -> object:
    if isinstance(content, str):
        return brackets.around_marks(content)
    assert isinstance(content, list)
    return [{**part, "text": brackets.around_marks(part["text"])} for part in content]
