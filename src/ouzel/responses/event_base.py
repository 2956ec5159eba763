"""The base records of all events of a response, and the place of an item in the output."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec


class ResponseEvent(msgspec.Struct, frozen=True, tag_field="type"):
    sequence_number: int  # counts from 0, without gaps


class ItemEvent(ResponseEvent, frozen=True):
    item_id: str
    output_index: int


@dataclass(frozen=True, slots=True)
class Place:
    """The id of an item, its index in the output, and the event counter of the response."""

    item_id: str
    output_index: int
    numbers: Iterator[int]

    def next(self) -> tuple[int, str, int]:
        """Returns the first fields of the next event: sequence number, item id, output index."""
        return next(self.numbers), self.item_id, self.output_index
