"""Fills in call ids that clients leave out, as clients of OpenVINO Model Server may do.

A call without a `call_id` gets its `id`. An output without a `call_id` gets the `call_id` of the
oldest call of its type that has no output yet.
"""

from collections.abc import Iterable

from ouzel.responses.call_history import CALL_TYPES, OUTPUT_TYPES

Fields = dict[str, object]


def complete_call_ids(items: Iterable[Fields]) -> list[Fields]:
    """Returns the items with call ids where an id can be found; the items are not yet checked."""
    complete: list[Fields] = []
    # Type of a call -> ids of the calls without an output, the oldest first.
    unanswered: dict[str, dict[str, None]] = {kind: {} for kind in CALL_TYPES}
    for item in items:
        call_id, kind = item.get("call_id"), item.get("type")
        if kind in CALL_TYPES:
            call_id = item.get("id") if call_id is None else call_id
            if isinstance(call_id, str):
                unanswered[str(kind)][call_id] = None
        elif kind in OUTPUT_TYPES:
            calls = unanswered[str(kind).removesuffix("_output")]
            call_id = next(iter(calls), None) if call_id is None else call_id
            if isinstance(call_id, str):
                calls.pop(call_id, None)
        complete.append(item if call_id == item.get("call_id") else {**item, "call_id": call_id})
    return complete
