"""Reads the input of `response.steer`, which queues it for a running response."""

from dataclasses import dataclass

from ouzel.responses.item_fields import Message
from ouzel.wire.validation_errors import show_value

_KEYS = {"type", "role", "content"}


@dataclass(frozen=True, slots=True)
class QueuedSteer:
    """Holds accepted input until a response that reads it has begun, or until it is given back."""

    id: str
    response_id: str  # the steered response
    input: object  # the client's value, unchanged
    num_bytes: int

    @property
    def items(self) -> list[Message]:
        return read_steering_items(self.input)


def read_steering_items(value: object) -> list[Message]:
    """Returns steering input as items of a response. Check it with `check_steering` before."""
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    assert isinstance(value, list)
    return value


def check_steering(value: object) -> str | None:
    """Returns the reason why input cannot be queued, or None.

    Content is checked later, by the model.
    """
    if isinstance(value, str):
        return None if value else "input must be a non-empty string, given ''"
    if not isinstance(value, list) or not value:
        return f"input must be a string or a non-empty list of messages, given {show_value(value)}"
    for position, item in enumerate(value):
        at = f"input[{position}]"
        if (
            not isinstance(item, dict)
            or item.get("type", "message") != "message"
            or item.get("role") != "user"
        ):
            return f"{at} must be a user's message, given {show_value(item)}"
        if not isinstance(item.get("content"), str | list):
            return (
                f"{at}.content must be a string or a list, given {show_value(item.get('content'))}"
            )
        if item.keys() - _KEYS:
            name = sorted(item.keys() - _KEYS)[0]
            return f"{at} must have nothing but type, role and content, given {show_value(name)}"
    return None
