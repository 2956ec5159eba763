"""Parses outputs of an unknown format: everything is content."""

from ouzel.parsers.base import ContentDelta, Delta
from ouzel.types.step_output import FinishReason


class PlainParser:
    def feed(self, text: str) -> list[Delta]:
        return [ContentDelta(text)] if text else []

    def finish(self, reason: FinishReason) -> list[Delta]:
        return []
