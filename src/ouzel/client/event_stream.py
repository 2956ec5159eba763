"""Reads server-sent events from pieces of any size."""

from ouzel.client.base import MAX_ANSWER_BYTES, ApiFailure

_LAST = b"[DONE]"  # OpenAI's mark after the last event


class EventStream:
    """Splits a stream of bytes into events, and holds the beginning of an unfinished event."""

    def __init__(self) -> None:
        self._num_bytes = 0  # bytes of the unfinished event
        self._rest: list[bytes] = []  # pieces of an unfinished line, joined when the line ends
        self._data: list[bytes] = []  # data lines of the unfinished event
        self.is_over = False

    def feed(self, received: bytes) -> list[bytes]:
        """Returns the data of the events that are complete now; bytes after `[DONE]` are ignored.

        Raises ApiFailure for an event that is longer than `MAX_ANSWER_BYTES`.
        """
        self._num_bytes += len(received)
        if self._num_bytes > MAX_ANSWER_BYTES:
            raise ApiFailure(
                f"the server sends an event of more than {MAX_ANSWER_BYTES // 2**20} MiB"
            )
        if b"\n" not in received:
            self._rest.append(received)
            return []
        lines = b"".join((*self._rest, received)).split(b"\n")
        self._rest = [lines.pop()]
        events: list[bytes] = []
        for line in lines:
            content = line.removesuffix(b"\r")
            if content.startswith(b"data:"):
                self._data.append(content[5:].removeprefix(b" "))
            elif not content and self._data:
                event = b"\n".join(self._data).strip()
                self._data.clear()
                if event == _LAST:
                    self.is_over = True
                    break
                if event:  # some servers send empty events to keep a connection alive
                    events.append(event)
        if not self._data:
            self._num_bytes = len(self._rest[0])
        return events
