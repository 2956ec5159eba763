"""Defines the answer that has a page of objects, as OpenAI defines it."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, Self, TypeVar

import msgspec


class HasId(Protocol):
    @property
    def id(self) -> str: ...


Stored = TypeVar("Stored", bound=HasId)
Shown = TypeVar("Shown")


class ObjectList(msgspec.Struct, Generic[Shown], frozen=True, tag_field="object", tag="list"):
    """A page of objects. Each kind of object has a subclass, which the OpenAPI document names."""

    data: list[Shown]
    first_id: str | None
    last_id: str | None
    has_more: bool

    @classmethod
    def of(
        cls, stored: Sequence[Stored], show: Callable[[Stored], Shown], *, has_more: bool = False
    ) -> Self:
        first_id, last_id = (stored[0].id, stored[-1].id) if stored else (None, None)
        return cls([show(each) for each in stored], first_id, last_id, has_more)
