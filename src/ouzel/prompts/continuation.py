"""Renders a chat whose prompt ends inside the last message, so that the model continues it.

Templates close a message with markup, and may strip its text before. Therefore a random mark is
appended to the text, and the rendering is cut at the mark. Since the text is not at the end of the
message, it is not stripped.
"""

import secrets
from collections.abc import Callable

from ouzel.errors import InvalidRequest
from ouzel.prompts.marked_text import MarkedText, bare
from ouzel.prompts.messages import Message

_FIELD = "continue_final_message"
_REASONING_END = "</think>"  # many templates take the text apart here


def render_unfinished(
    messages: list[Message], render: Callable[[list[Message]], MarkedText]
) -> MarkedText:
    """Renders messages that `shape_messages` returned, up to the end of the last text.

    Raises InvalidRequest if the last message has no text at its end, or if the rendering changes
    the text.
    """
    *before, last = messages
    if last.get("tool_calls"):
        raise InvalidRequest("needs a last message without tool calls", field=_FIELD)
    mark = f"mark{secrets.token_hex(8)}"
    text, marked = _with_mark(last["content"], mark)
    rendered = render([*before, {**last, "content": marked}])
    end = rendered.text.rfind(mark)
    shown = bare(text).rpartition(_REASONING_END)[2].lstrip()
    if end < 0 or not rendered.text[:end].endswith(shown):
        raise InvalidRequest(
            ": the chat template does not write the last message as it is", field=_FIELD
        )
    return rendered.cut(0, end)


def _with_mark(content: object, mark: str) -> tuple[str, object]:
    """Returns the text to continue (of the last part, if the content is a list), and the content
    with the mark behind it.
    """
    if isinstance(content, str):
        return content, content + mark
    assert isinstance(content, list)
    *before, last = content
    if "text" not in last:
        raise InvalidRequest("needs a last message that ends with a text", field=_FIELD)
    return last["text"], [*before, {**last, "text": last["text"] + mark}]
