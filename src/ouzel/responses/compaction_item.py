"""A compaction item stands for what was said before: it holds the summary that a model has written of it."""

import msgspec

_TEXT_FOR_MODEL = "[What was said before, summarised]\n{summary}\n[End of the summary]"


class CompactionItem(msgspec.Struct, frozen=True, tag_field="type", tag="compaction"):
    id: str
    encrypted_content: str  # see `packed_text.SUMMARY`


def text_for_model(summary: str) -> str:
    """Returns what a user's message says instead of all that was said before."""
    return _TEXT_FOR_MODEL.format(summary=summary)
