"""Declares chats whose tools this server runs: the tools are opened before the prompt is rendered.

body ─prepare─> HostedChat ─open tools─> OpenedTools ─begin─> BegunChat ─> turns
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ouzel.api.http.dialect import Answer, AnswerTo, Prepared
from ouzel.generation import GenerationRequest
from ouzel.hosted_chats.events import TurnEvent
from ouzel.hosted_chats.tool_turns import TurnRules
from ouzel.responses.hosted.kinds import Entry, HostedKinds
from ouzel.responses.hosted.opened_tools import OpenedTools
from ouzel.wire.decode import JsonObject
from ouzel.wire.offered_tools import ClientName


@dataclass(frozen=True, slots=True)
class ShownCalls:
    """An answer that shows the calls which this server runs."""

    answer: AnswerTo[TurnEvent]


@dataclass(frozen=True, slots=True)
class BegunChat:
    request: GenerationRequest  # the request of the first turn
    rules: TurnRules
    answer: ShownCalls | Answer  # an `Answer` alone does not show the calls


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedChat:
    kinds: HostedKinds
    entries: Sequence[Entry]
    begin: Callable[[OpenedTools], BegunChat]  # runs in a thread
    is_offered: Callable[[ClientName], bool] = lambda _: True
    items: Sequence[JsonObject] = ()  # earlier items with sources
    has_own_template: bool = False  # the request has a chat template


class HostingDialect(Protocol):
    """Reads the bodies of an endpoint, also if this server runs their tools."""

    def parse(self, body: bytes) -> JsonObject:
        """Returns the fields of the body, unchanged."""
        ...

    def prepare(self, fields: JsonObject, arrival_s: float) -> Prepared | HostedChat:
        """Prepares the answer, as a `Dialect` does, or a chat that needs open tools first."""
        ...


# takes the id of the request's API key; None if the server has no keys
DialectOfKey = Callable[[str | None], HostingDialect]
