"""`tools/house/hops.py`: the count of a request's hops between folders."""

import pytest

from tools.house.hops import REQUESTS, Call, Function, Hop, hops_of, record

DOOR, READER, ERRORS = (
    Function("door/door.py", "enter"),
    Function("wire/reader.py", "read"),
    Function("errors.py", "fail"),
)
CHECK, SEND = Function("wire/checks.py", "check"), Function("door/sender.py", "send")


@pytest.mark.parametrize("request_name", REQUESTS)
def test_hops_are_the_same_every_time(request_name: str) -> None:
    first = record(request_name)
    assert record(request_name) == first
    assert all(hop.origin.folder != hop.target.folder for hops in first.values() for hop in hops)


def test_a_call_into_another_folder_is_a_hop() -> None:
    assert hops_of([Call(DOOR, READER), Call(READER, CHECK)]) == [Hop(DOOR, READER, is_call=True)]


def test_the_way_back_is_a_hop_where_another_one_follows() -> None:
    calls = [Call(DOOR, READER), Call(READER, CHECK), Call(DOOR, SEND), Call(SEND, CHECK), Call(DOOR, SEND)]
    assert hops_of(calls) == [
        Hop(DOOR, READER, is_call=True),
        Hop(CHECK, DOOR, is_call=False),
        Hop(SEND, CHECK, is_call=True),
    ]


def test_files_of_the_package_itself_are_no_folder() -> None:
    assert hops_of([Call(DOOR, ERRORS), Call(ERRORS, CHECK)]) == []
