"""Clients may leave out call ids, as OpenVINO Model Server lets them: which call is meant is seen from the items.

A call without a `call_id` goes by its `id`; an output without one is of the oldest call that has none yet.
"""

from collections.abc import Iterable

Fields = dict[str, object]


def with_call_ids(items: Iterable[Fields]) -> list[Fields]:
    """Returns the items complete, where they can be. They have not been checked yet."""
    complete: list[Fields] = []
    unanswered: dict[str, None] = {}  # call ids, the oldest first
    for item in items:
        call_id = item.get("call_id")
        if item.get("type") == "function_call":
            call_id = item.get("id") if call_id is None else call_id
            if isinstance(call_id, str):
                unanswered[call_id] = None
        elif item.get("type") == "function_call_output":
            call_id = next(iter(unanswered), None) if call_id is None else call_id
            if isinstance(call_id, str):
                unanswered.pop(call_id, None)
        complete.append(item if call_id == item.get("call_id") else {**item, "call_id": call_id})
    return complete
