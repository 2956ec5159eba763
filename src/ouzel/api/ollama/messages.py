"""Turns Ollama's messages into ours.

Some keys have other names in Ollama, and tool calls and results have no ids.
"""

from collections import deque
from collections.abc import Sequence

from ouzel.errors import InvalidRequest
from ouzel.generation import MediaPart
from ouzel.wire.validation_errors import show_value

Message = dict[str, object]


def read_messages(entries: list[object], *, supports_images: bool) -> list[object]:
    """Translates messages. Invalid messages stay unchanged: the renderer refuses them.

    `supports_images` says whether the model accepts images. Raises InvalidRequest for invalid
    images.
    """
    calls = _OpenCalls()
    return [
        _message(entry, f"messages[{position}]", calls, supports_images=supports_images)
        if isinstance(entry, dict)
        else entry
        for position, entry in enumerate(entries)
    ]


def read_images(images: object, field: str, *, supports_images: bool) -> list[MediaPart]:
    """Reads images. Raises InvalidRequest."""
    if not images:
        return []
    if not supports_images:
        raise InvalidRequest("must not be given: this model reads no pictures", field=field)
    if not isinstance(images, list):
        raise InvalidRequest(f"must be a list, given {show_value(images)}", field=field)
    return [_picture(image, f"{field}[{position}]") for position, image in enumerate(images)]


def add_images(pictures: Sequence[MediaPart], content: object) -> object:
    """Puts images before a content, as Ollama does. An invalid content stays unchanged."""
    match content:
        case _ if not pictures:
            return content
        case "":
            return [*pictures]
        case str():
            return [*pictures, {"type": "text", "text": content}]
        case list():
            return [*pictures, *content]
        case _:
            return content


def _picture(image: object, path: str) -> MediaPart:
    if not isinstance(image, str) or not image:
        raise InvalidRequest(f"must be a file in base64, given {show_value(image)}", field=path)
    return MediaPart(path, image if image.startswith("data:") else f"data:;base64,{image}")


def _message(entry: Message, path: str, calls: "_OpenCalls", *, supports_images: bool) -> Message:
    message = {key: value for key, value in entry.items() if value is not None}
    pictures = read_images(
        message.pop("images", None), f"{path}.images", supports_images=supports_images
    )
    role = message.get("role")
    if isinstance(role, str):
        message["role"] = role.lower()
    message["content"] = add_images(pictures, message.get("content", ""))
    for ollamas, ours in (("thinking", "reasoning_content"), ("tool_name", "name")):
        if ollamas in message:
            message.setdefault(ours, message.pop(ollamas))
    tool_calls = message.get("tool_calls")
    if isinstance(tool_calls, list):
        message["tool_calls"] = [calls.add_id(call) for call in tool_calls]
    if message.get("role") == "tool" and "tool_call_id" not in message:
        message |= calls.find_answered(message.get("name"))
    return message


class _OpenCalls:
    """Adds ids to calls, which some templates need, and to results the ids of their calls."""

    def __init__(self) -> None:
        self._num_calls = 0
        self._open: deque[tuple[object, object]] = deque()  # names and ids of unanswered calls

    def add_id(self, call: object) -> object:
        """Adds an id to a call. An invalid call stays unchanged."""
        if not isinstance(call, dict) or not isinstance(call.get("function"), dict):
            return call
        self._num_calls += 1
        # nine characters, as Mistral's templates demand
        call_id = call.get("id") or f"call{self._num_calls:05d}"
        self._open.append((call["function"].get("name"), call_id))
        return {**call, "id": call_id}

    def find_answered(self, name: object) -> Message:
        """Returns the key with the id of the first unanswered call of that name, else of any call.

        Without unanswered calls it returns nothing.
        """
        found = next((each for each in self._open if each[0] == name), None) or next(
            iter(self._open), None
        )
        if found is None:
            return {}
        self._open.remove(found)
        return {"tool_call_id": found[1]}
