"""Server-sent events come in pieces of any size; their data leaves whole."""

from ouzel.client.base import MAX_ANSWER_BYTES, ApiFailure

_LAST = b"[DONE]"  # OpenAI's mark behind the last event


class EventStream:
    """Holds what has come of an event that is not whole yet."""

    def __init__(self) -> None:
        self._num_bytes = 0  # that are held
        self._rest: list[bytes] = []  # of a line, in pieces: a long one is put together once
        self._data: list[bytes] = []  # of the event's lines
        self.is_over = False

    def feed(self, received: bytes) -> list[bytes]:
        """Returns the data of the events that are whole now. Nothing counts behind the last.

        Raises ApiFailure for an event without an end.
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
                if event:  # some servers keep a connection alive with nothing
                    events.append(event)
        if not self._data:
            self._num_bytes = len(self._rest[0])
        return events
