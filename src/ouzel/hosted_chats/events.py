"""Defines the events of a chat in which this server runs tools."""

import msgspec

from ouzel.generation import Event
from ouzel.responses.hosted.items import AnyHostedItem


class CallEnded(msgspec.Struct, frozen=True):
    """The end of a call that this server has run; its deltas came before."""

    call_id: str  # the id in the deltas of the call
    item: AnyHostedItem
    is_over_limit: bool = False  # the call was not run, because no call was left


class Paused(msgspec.Struct, frozen=True):
    """No calls are left: the client decides whether the chat goes on. Only `Finished` follows."""


TurnEvent = Event | CallEnded | Paused
