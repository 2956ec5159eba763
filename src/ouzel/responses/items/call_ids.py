"""Clients may leave out call ids, as OpenVINO Model Server lets them: which call is meant is seen from the items.

A call without a `call_id` goes by its `id`; an output without one is of the oldest call of its kind that has none yet.
"""

from collections.abc import Iterable

from ouzel.responses.call_history import CALL_TYPES, OUTPUT_TYPES

Fields = dict[str, object]


def with_call_ids(items: Iterable[Fields]) -> list[Fields]:
    """Returns the items complete, where they can be. They have not been checked yet."""
    complete: list[Fields] = []
    unanswered: dict[str, dict[str, None]] = {
        kind: {} for kind in CALL_TYPES
    }  # call ids, the oldest first
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
