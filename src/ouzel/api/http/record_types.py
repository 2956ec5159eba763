"""Prepares msgspec to decode records from several threads."""

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def prepare_record_types() -> None:
    """Builds the description by which msgspec decodes each record class that is imported by now.

    msgspec 0.22 builds a description when its class is decoded for the first time, and other
    threads see the description before it is whole. A process in which two threads decode the same
    class at that moment may end by a segmentation fault. Call this function after the imports and
    before a second thread decodes. It takes about 50 ms for 500 classes.

    Classes that are imported later, or in an engine's process, and that threads decode, have a
    decoder at the level of their module: the import builds it in one thread.
    """
    for record in set(_list_subclasses(msgspec.Struct)):
        with suppress(TypeError):  # records that are only encoded may have types without a tag
            msgspec.json.Decoder(record)


def _list_subclasses(record: type) -> Iterator[type]:
    subclasses: list[type] = record.__subclasses__()
    for subclass in subclasses:
        yield subclass
        yield from _list_subclasses(subclass)
