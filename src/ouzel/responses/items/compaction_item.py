"""A compaction item replaces an earlier part of a conversation by a summary.

There are two kinds, and the mark of the packed text tells them apart (`packed_text`):

-   `SUMMARY`, made by POST /responses/compact, is a summary; the client keeps the user messages
    beside it.
-   `CONTEXT`, made by a response with `context_management`, replaces everything before it except
    leading system messages: a summary and the text of the last user message.
"""

import msgspec

_END = "[End of the summary]"
_TEXT_FOR_MODEL = f"[What was said before, summarised]\n{{summary}}\n{_END}"


class CompactionItem(msgspec.Struct, frozen=True, tag_field="type", tag="compaction"):
    id: str
    encrypted_content: str  # see `packed_text`


def text_for_model(summary: str, last_text: str = "") -> str:
    """Returns the text of the user message that replaces a conversation.

    The text has the summary, and after it `last_text`, the text of the last user message.
    """
    text = _TEXT_FOR_MODEL.format(summary=summary)
    return f"{text}\n\n{last_text}" if last_text else text


def remove_summary(text: str) -> str:
    """Removes the summary that `text_for_model` puts first; returns other texts unchanged."""
    _, end, last_text = text.rpartition(_END)
    return last_text.removeprefix("\n\n") if end else text
