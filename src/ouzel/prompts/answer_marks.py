"""Restores the model's visible marks, such as `<tool_call>`, in earlier answers.

When an answer comes back as a message, its marks are encoded as the tokens that the model wrote. In
every other message a mark is text. Special tokens are text everywhere, because no answer shows
them.
"""

from ouzel.prompts.marked_text import StandIns
from ouzel.prompts.messages import Message


def answers_with_stand_ins(messages: list[Message], stand_ins: StandIns) -> list[Message]:
    """Returns the messages with stand-ins for the marks in the assistant's texts.

    `stand_ins` must know only the visible marks.
    """
    return [
        {**message, "content": _marked(message["content"], stand_ins)}
        if message["role"] == "assistant"
        else message
        for message in messages
    ]


def _marked(content: object, stand_ins: StandIns) -> object:
    if isinstance(content, str):
        return stand_ins.write_tokens(content)
    assert isinstance(content, list)
    return [
        {**part, "text": stand_ins.write_tokens(part["text"])} if "text" in part else part
        for part in content
    ]
