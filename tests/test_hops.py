"""`tools/house/hops.py` counts a request's hops between folders."""

import pytest

from tools.house.hops import REQUESTS, Call, Function, Hop, longest_chain, read_hops, record

DOOR = Function("door/door.py", "enter")
READER = Function("wire/reader.py", "read")
ERRORS = Function("errors.py", "fail")
CHECK, SEND = Function("wire/checks.py", "check"), Function("door/sender.py", "send")


LIMITS = {"chat": 32, "responses": 50}


@pytest.mark.parametrize("request_name", REQUESTS)
def test_the_path_of_a_request_is_short_and_constant(request_name: str) -> None:
    first = record(request_name)
    assert longest_chain(first) <= LIMITS[request_name]
    again = record(request_name)
    assert _select_tasks(again).keys() == _select_tasks(first).keys()
    assert all(
        _have_equal_beginnings(hops, again[where]) for where, hops in _select_tasks(first).items()
    )
    assert all(hop.origin.folder != hop.target.folder for hops in first.values() for hop in hops)


def _select_tasks(recorded: dict[str, list[Hop]]) -> dict[str, list[Hop]]:
    """Returns the tasks without the threads, whose calls depend on the timing of other threads."""
    return {where: hops for where, hops in recorded.items() if where.startswith("task")}


def _have_equal_beginnings(hops: list[Hop], others: list[Hop]) -> bool:
    """Compares two lists as far as both go: a concurrent task may have gone more or less far."""
    return all(hop == other for hop, other in zip(hops, others, strict=False))


def test_a_call_into_another_folder_is_a_hop() -> None:
    assert read_hops([Call(DOOR, READER), Call(READER, CHECK)]) == [Hop(DOOR, READER, is_call=True)]


def test_a_return_is_a_hop_if_another_hop_follows() -> None:
    calls = [
        Call(DOOR, READER),
        Call(READER, CHECK),
        Call(DOOR, SEND),
        Call(SEND, CHECK),
        Call(DOOR, SEND),
    ]
    assert read_hops(calls) == [
        Hop(DOOR, READER, is_call=True),
        Hop(CHECK, DOOR, is_call=False),
        Hop(SEND, CHECK, is_call=True),
    ]


def test_files_directly_in_the_package_are_no_folder() -> None:
    assert read_hops([Call(DOOR, ERRORS), Call(ERRORS, CHECK)]) == []
