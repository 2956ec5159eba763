"""Lists all items of tools that this server runs; each kind has its own file in this folder."""

from typing import get_args

import msgspec

from ouzel.responses.event_base import ResponseEvent
from ouzel.responses.hosted import web_search
from ouzel.responses.hosted.web_search import WebSearchCall

AnyHostedItem = WebSearchCall

EVENTS: tuple[type[ResponseEvent], ...] = web_search.EVENTS
TYPES = frozenset(
    str(kind.__struct_config__.tag) for kind in get_args(AnyHostedItem) or (AnyHostedItem,)
)


def read_hosted_item(fields: dict[str, object]) -> AnyHostedItem | None:
    """Reads an item that a client sends or the store has; None if it is not such an item.

    Clients send back items of this server and of others, which may lack fields: None for these.
    """
    try:
        return msgspec.convert(fields, AnyHostedItem)
    except msgspec.ValidationError:
        return None
