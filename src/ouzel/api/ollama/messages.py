"""A chat's messages become ours: Ollama's have other names for some keys, and calls and results without ids."""

from collections import deque

from ouzel.errors import InvalidRequest

Message = dict[str, object]


def read_messages(entries: list[object]) -> list[object]:
    """Leaves what is no message as it is, for the renderer to name. Raises InvalidRequest for images."""
    calls = _OpenCalls()
    return [
        _message(entry, f"messages[{position}]", calls) if isinstance(entry, dict) else entry
        for position, entry in enumerate(entries)
    ]


def refuse_images(images: object, field: str) -> None:
    if images:
        raise InvalidRequest("must not be given: this model reads text only", field=field)


def _message(entry: Message, path: str, calls: "_OpenCalls") -> Message:
    message = {key: value for key, value in entry.items() if value is not None}
    refuse_images(message.pop("images", None), f"{path}.images")
    role = message.get("role")
    if isinstance(role, str):
        message["role"] = role.lower()
    message.setdefault("content", "")
    for ollamas, ours in (("thinking", "reasoning_content"), ("tool_name", "name")):
        if ollamas in message:
            message.setdefault(ours, message.pop(ollamas))
    tool_calls = message.get("tool_calls")
    if isinstance(tool_calls, list):
        message["tool_calls"] = [calls.with_id(call) for call in tool_calls]
    if message.get("role") == "tool" and "tool_call_id" not in message:
        message |= calls.answered(message.get("name"))
    return message


class _OpenCalls:
    """Gives calls the ids that some templates ask for, and results those of the calls that they answer."""

    def __init__(self) -> None:
        self._num_calls = 0
        self._open: deque[tuple[object, object]] = deque()  # name and id

    def with_id(self, call: object) -> object:
        """Leaves what is no call as it is."""
        if not isinstance(call, dict) or not isinstance(call.get("function"), dict):
            return call
        self._num_calls += 1
        call_id = call.get("id") or f"call{self._num_calls:05d}"  # nine characters, as Mistral's templates want it
        self._open.append((call["function"].get("name"), call_id))
        return {**call, "id": call_id}

    def answered(self, name: object) -> Message:
        """Returns the key with the id of the first unanswered call of that name, or of any; nothing without calls."""
        found = next((each for each in self._open if each[0] == name), None) or next(iter(self._open), None)
        if found is None:
            return {}
        self._open.remove(found)
        return {"tool_call_id": found[1]}
