"""`response.steer` queues input for a response that is being made."""

from dataclasses import dataclass

from ouzel.responses.item_fields import Message
from ouzel.wire.validation_errors import shown

_KEYS = {"type", "role", "content"}


@dataclass(frozen=True, slots=True)
class QueuedSteer:
    """It has been accepted: the server owns it until a response has begun that reads it, or until it is given back."""

    id: str
    response_id: str  # that it steers
    input: object  # as it came
    num_bytes: int

    @property
    def items(self) -> list[Message]:
        return steering_items(self.input)


def steering_items(value: object) -> list[Message]:
    """Returns it as input of a response. `fault_of_steering` has found no fault."""
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    assert isinstance(value, list)
    return value


def fault_of_steering(value: object) -> str | None:
    """Says why it cannot be queued. What its content may be is the model's matter, as in every other input."""
    if isinstance(value, str):
        return None if value else "input must be a non-empty string, given ''"
    if not isinstance(value, list) or not value:
        return f"input must be a string or a non-empty list of messages, given {shown(value)}"
    for position, item in enumerate(value):
        at = f"input[{position}]"
        if (
            not isinstance(item, dict)
            or item.get("type", "message") != "message"
            or item.get("role") != "user"
        ):
            return f"{at} must be a user's message, given {shown(item)}"
        if not isinstance(item.get("content"), str | list):
            return f"{at}.content must be a string or a list, given {shown(item.get('content'))}"
        if item.keys() - _KEYS:
            return f"{at} must have nothing but type, role and content, given {shown(sorted(item.keys() - _KEYS)[0])}"
    return None
