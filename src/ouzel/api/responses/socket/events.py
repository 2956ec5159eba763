"""Defines the events that only WebSockets have, as OpenAI does (`ResponsesServerEvent`).

All other events are the same as in streams.
"""

from typing import Literal

import msgspec

from ouzel.api.http.faults import Fault

SteerFailure = Literal[
    "response_not_found",
    "invalid_input",
    "steering_not_supported",
    "too_many_pending_steers",
    "response_already_completed",
    "response_not_active",
    "successor_creation_failed",
]


class SocketError(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    code: str | None
    message: str
    param: str | None
    # headers of the same error over HTTP
    headers: dict[str, str] | msgspec.UnsetType = msgspec.UNSET


class ErrorEvent(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    status: int  # the HTTP status
    error: SocketError

    @classmethod
    def of(cls, fault: Fault) -> "ErrorEvent":
        headers = {name.decode(): value.decode("latin-1") for name, value in fault.headers}
        error = SocketError(
            type=fault.type,
            code=fault.code,
            message=fault.message,
            param=fault.param,
            headers=headers or msgspec.UNSET,
        )
        return cls(fault.status, error)


class AcceptedSteer(msgspec.Struct, frozen=True):
    id: str
    previous_response_id: str  # the steered response


class SteerAccepted(msgspec.Struct, frozen=True, tag_field="type", tag="response.steer.accepted"):
    # number of the last event before: a replay of the response lacks this event
    sequence_number: int
    steer: AcceptedSteer


class RequiredOutput(msgspec.Struct, frozen=True, tag_field="type", tag="function_call_output"):
    """Names an output that the client must send."""

    call_id: str
    name: str


class SteerPending(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="response.steer.pending"
):
    sequence_number: int
    steer: AcceptedSteer
    required_input: list[RequiredOutput]
    reason: Literal["waiting_for_required_input"] = "waiting_for_required_input"


class RefusedSteer(msgspec.Struct, frozen=True, kw_only=True):
    previous_response_id: str
    input: object  # the client's value, unchanged
    id: str | msgspec.UnsetType = msgspec.UNSET


class SteerError(msgspec.Struct, frozen=True):
    code: SteerFailure
    message: str
    type: Literal["invalid_request_error"] = "invalid_request_error"


class SteerFailed(msgspec.Struct, frozen=True, tag_field="type", tag="response.steer.failed"):
    sequence_number: int
    steer: RefusedSteer
    error: SteerError
