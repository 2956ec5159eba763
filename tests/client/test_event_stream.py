"""Events come out whole, however the stream was cut into pieces."""

import pytest

from ouzel.client.event_stream import EventStream

STREAM = (
    b': a comment\n\nevent: x\ndata: {"a": 1}\n\ndata:two\r\ndata:  lines\r\n\r\n'
    b"data:\n\ndata: [DONE] \n\ndata: late\n\n"
)
EVENTS = [b'{"a": 1}', b"two\n lines"]


@pytest.mark.parametrize("size", range(1, len(STREAM) + 1))
def test_events_do_not_depend_on_how_the_stream_was_cut(size: int) -> None:
    stream = EventStream()
    events: list[bytes] = []
    for start in range(0, len(STREAM), size):
        if not stream.is_over:
            events += stream.feed(STREAM[start : start + size])
    assert events == EVENTS
    assert stream.is_over


def test_an_event_that_is_not_whole_is_held_back() -> None:
    stream = EventStream()
    assert stream.feed(b"data: a\n") == []
    assert stream.feed(b"\n") == [b"a"]
    assert not stream.is_over
