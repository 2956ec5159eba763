"""Prepares msgspec to decode records from several threads."""

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def prepare_record_types() -> None:
    """Builds the description by which msgspec decodes each record class that is imported by now.

    msgspec builds a description when its class is decoded for the first time, and other threads
    see the description before it is whole: a process that decodes the same class in two threads
    at that moment may end by a segmentation fault. Call this function after the imports and
    before another thread decodes. It takes about 50 ms for 500 classes.
    """
    for record in set(_list_subclasses(msgspec.Struct)):
        with suppress(TypeError):  # records that are only encoded may have types without a tag
            msgspec.json.Decoder(record)


def _list_subclasses(record: type) -> Iterator[type]:
    subclasses: list[type] = record.__subclasses__()
    for subclass in subclasses:
        yield subclass
        yield from _list_subclasses(subclass)
