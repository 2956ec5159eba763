"""`tools/house/hops.py`: the count of a request's hops between folders."""

import pytest

from tools.house.hops import REQUESTS, Call, Function, Hop, longest_chain, read_hops, record

DOOR, READER, ERRORS = (
    Function("door/door.py", "enter"),
    Function("wire/reader.py", "read"),
    Function("errors.py", "fail"),
)
CHECK, SEND = Function("wire/checks.py", "check"), Function("door/sender.py", "send")


LIMITS = {"chat": 32, "responses": 50}


@pytest.mark.parametrize("request_name", REQUESTS)
def test_the_way_of_a_request_is_short_and_always_the_same(request_name: str) -> None:
    first = record(request_name)
    assert longest_chain(first) <= LIMITS[request_name]
    again = record(request_name)
    assert _of_tasks(again).keys() == _of_tasks(first).keys()
    assert all(_begins_as(hops, again[where]) for where, hops in _of_tasks(first).items())
    assert all(hop.origin.folder != hop.target.folder for hops in first.values() for hop in hops)


def _of_tasks(recorded: dict[str, list[Hop]]) -> dict[str, list[Hop]]:
    """Leaves out threads: what the engine's loop calls depends on when the others run."""
    return {where: hops for where, hops in recorded.items() if where.startswith("task")}


def _begins_as(hops: list[Hop], others: list[Hop]) -> bool:
    """Compares them as far as both go: a task beside the one that answers has gone more or less far by then."""
    return all(hop == other for hop, other in zip(hops, others, strict=False))


def test_a_call_into_another_folder_is_a_hop() -> None:
    assert read_hops([Call(DOOR, READER), Call(READER, CHECK)]) == [Hop(DOOR, READER, is_call=True)]


def test_the_way_back_is_a_hop_where_another_one_follows() -> None:
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


def test_files_of_the_package_itself_are_no_folder() -> None:
    assert read_hops([Call(DOOR, ERRORS), Call(ERRORS, CHECK)]) == []
