"""A compaction item stands for what was said before: it holds the summary that a model has written of it.

There are two, told apart by how their text is packed. That of POST /responses/compact (`SUMMARY`) is a summary, and
comes beside what the user has said. That of a response with `context_management` (`CONTEXT`) is all that the model is
shown of what stands before it, but for leading system messages: a summary, and what the user said last.
"""

import msgspec

_END = "[End of the summary]"
_TEXT_FOR_MODEL = f"[What was said before, summarised]\n{{summary}}\n{_END}"


class CompactionItem(msgspec.Struct, frozen=True, tag_field="type", tag="compaction"):
    id: str
    encrypted_content: str  # see `packed_text`


def text_for_model(summary: str, last_text: str = "") -> str:
    """Returns what a user's message says instead of all that was said before, and what the user said last."""
    text = _TEXT_FOR_MODEL.format(summary=summary)
    return f"{text}\n\n{last_text}" if last_text else text


def without_summary(text: str) -> str:
    """Returns the user's own words in a text that `text_for_model` may have made, or any other text as it is."""
    _, end, last_text = text.rpartition(_END)
    return last_text.removeprefix("\n\n") if end else text
