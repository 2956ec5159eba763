"""Shows pictures to a chat template that reads texts only: each is a line of its message's text.

The lines can have stand-ins (`marked_text`). So they belong to the template, and a client's text
with the same spelling stays text.
"""

from collections.abc import Sequence

from ouzel.prompts.messages import Message


def show_pictures_as_lines(messages: Sequence[Message], line: str) -> list[Message]:
    """Returns the messages with texts for lists of parts; `line` stands for each picture."""
    return [_with_text(message, line) for message in messages]


def _with_text(message: Message, line: str) -> Message:
    parts = message["content"]
    if not isinstance(parts, list) or not parts:
        return message
    lines = [str(part["text"]) if part["type"] == "text" else line for part in parts]
    return {**message, "content": "\n".join(lines)}
