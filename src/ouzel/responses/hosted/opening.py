"""Finds the tools of a request that this server runs, and opens them."""

from collections.abc import Sequence

from ouzel.errors import InvalidRequest
from ouzel.responses.context import Context
from ouzel.responses.hosted.kinds import Entry, HostedKinds, OpeningContext
from ouzel.responses.hosted.opened_tools import OpenedTools, open_tools
from ouzel.responses.request import ResponsesRequest
from ouzel.wire.offered_tools import HostedOffer


def list_hosted(fields: ResponsesRequest, kinds: HostedKinds) -> list[Entry]:
    """Returns the entries of `tools` that this server runs. Raises InvalidRequest."""
    entries = [
        (f"tools[{position}]", tool)
        for position, tool in enumerate(fields.tools or [])
        if kinds.find(tool.get("type")) is not None
    ]
    for path, tool in entries:
        kind = kinds.find(tool.get("type"))
        assert kind is not None
        kind.check(tool, path)
    refuse_same_labels(entries)
    if entries and fields.continue_final_message:
        raise InvalidRequest(
            "must not be given beside tools that this server runs", field="continue_final_message"
        )
    return entries


def offer_types(kinds: HostedKinds) -> HostedOffer:
    """Returns the offer of a request whose tools are not open yet: their types, no functions."""
    return HostedOffer(kinds.types, hints=kinds.hints)


async def open_hosted(
    entries: Sequence[Entry],
    fields: ResponsesRequest,
    kinds: HostedKinds,
    context: Context,
    key_id: str | None,
) -> OpenedTools:
    """Opens the tools for a response that begins with the items of `context`."""
    opening = OpeningContext(
        key_id=key_id,
        include=frozenset(fields.include or ()),
        items=[item.fields for item in context.items],
    )
    return await open_tools(kinds, entries, opening, max_calls=fields.max_tool_calls)


def refuse_same_labels(entries: Sequence[Entry]) -> None:
    """Raises InvalidRequest if two servers have one label: their items would be mixed up."""
    labels: set[object] = set()
    for path, tool in entries:
        if tool.get("type") != "mcp":
            continue
        label = tool["server_label"]  # its kind has checked the entry
        if label in labels:
            raise InvalidRequest(
                f"must be unique, given {label!r} again", field=f"{path}.server_label"
            )
        labels.add(label)
