"""Cancels running responses of a WebSocket, or steers them by more input.

steer ─> accepted ─> the current item, or the response, ends
    ─> a successor reads the input
    ─> pending: the client owes a tool's output
    ─> failed: the client gets its input back
"""

from dataclasses import dataclass, field, replace

from ouzel.api.http.body_budget import Share
from ouzel.api.responses.socket.events import (
    AcceptedSteer,
    RefusedSteer,
    RequiredOutput,
    SteerAccepted,
    SteerError,
    SteerFailed,
    SteerPending,
)
from ouzel.api.responses.socket.messages import Create, Steer
from ouzel.api.responses.socket.outbox import Outbox
from ouzel.api.responses.socket.steers import QueuedSteer, check_steering
from ouzel.errors import InvalidRequest, Overloaded
from ouzel.responses.output_items import FunctionCallItem, new_id
from ouzel.responses.response_object import ResponseObject
from ouzel.responses.run import Run

MAX_STEERS = 16  # steers that wait for one response
_MAX_QUEUED = 64  # steers that wait on one WebSocket


@dataclass(slots=True)
class Active:
    """A running response, and the input that waits to steer it."""

    run: Run
    create: Create
    num_sent: int = 0  # events sent
    steers: list[QueuedSteer] = field(default_factory=list)

    @property
    def last_number(self) -> int:
        return max(self.num_sent - 1, 0)


class Steering:
    def __init__(self, *, max_queued_bytes: int, share: Share) -> None:
        """`share` counts the bytes of waiting steers."""
        self._max_queued_bytes = max_queued_bytes
        self._share = share
        self._active: dict[str, Active] = {}
        self._ended: dict[str, None] = {}  # ids of responses, oldest first
        # steers that wait for outputs of tools, by the response that called the tools
        self._waiting: dict[str, list[QueuedSteer]] = {}

    def begin(self, run: Run, create: Create) -> Active:
        active = self._active[run.id] = Active(run, create)
        return active

    def end(self, active: Active) -> None:
        """Ends the steering of a response. Its steers are complete: no more are accepted."""
        del self._active[active.run.id]
        self._ended[active.run.id] = None
        if len(self._ended) > 1000:
            del self._ended[next(iter(self._ended))]

    def cancel(self, response_id: str) -> None:
        active = self._active.get(response_id)
        if active is None:
            field_name = "response_id"
            of_one = "the id of a running response of this WebSocket"
            raise InvalidRequest(f"must be {of_one}, given {response_id[:100]}", field=field_name)
        active.run.cancel()

    def find_lane(self, response_id: str) -> str | None:
        active = self._active.get(response_id)
        return None if active is None else active.create.stream_id

    async def steer(self, message: Steer, outbox: Outbox) -> None:
        """Queues input for a response, or sends the reason why not.

        `outbox` is the response's lane.
        """
        active = self._active.get(message.response_id)
        refusal = self._refusal(message, active)
        if refusal is not None:
            refused = RefusedSteer(previous_response_id=message.response_id, input=message.input)
            await outbox.put(
                SteerFailed(0 if active is None else active.last_number, refused, refusal)
            )
            return
        assert active is not None
        queued = QueuedSteer(new_id("steer"), message.response_id, message.input, message.num_bytes)
        active.steers.append(queued)
        active.run.steer()
        await outbox.put(
            SteerAccepted(active.last_number, AcceptedSteer(queued.id, queued.response_id))
        )

    def add_waiting(self, create: Create) -> Create:
        """Returns the request with the input that waits for the response it continues."""
        steers = self._waiting.pop(str(create.previous_response_id), [])
        return replace(create, steers=tuple(steers)) if steers else create

    def wait_again(self, create: Create) -> None:
        """Stores the steers of a request that has not become a response, for its next attempt."""
        if create.steers:
            self._waiting[create.steers[0].response_id] = list(create.steers)

    async def follow_up(self, active: Active, outbox: Outbox) -> Create | None:
        """Returns the request of a successor that reads the queued input, or None.

        Call it after the response has ended. The client makes the successor if it owes outputs of
        tools.
        """
        response = active.run.response
        if not active.steers:
            return None
        if not _has_come_to_something(response):
            why = f"the response is {response.status}: it has no successor"
            await give_back(
                active.steers, SteerError("response_not_active", why), active.last_number, outbox
            )
            return None
        required = [RequiredOutput(call.call_id, call.name) for call in _calls(response)]
        if required:
            self._waiting[response.id] = active.steers
            for steer in active.steers:
                accepted = AcceptedSteer(steer.id, steer.response_id)
                await outbox.put(
                    SteerPending(
                        sequence_number=active.last_number, steer=accepted, required_input=required
                    )
                )
            return None
        steers = tuple(active.steers)
        return replace(
            active.create, previous_response_id=response.id, follows=response.id, steers=steers
        )

    def _refusal(self, message: Steer, active: Active | None) -> SteerError | None:
        fault = check_steering(message.input)
        if fault is not None:
            return SteerError("invalid_input", fault)
        if active is not None:
            return _check_active(active) or self._take_room(message)
        if message.response_id in self._ended:
            why = "the response has ended: continue it by response.create"
            return SteerError("response_already_completed", why)
        return SteerError("response_not_found", "no such response is being made on this WebSocket")

    def _take_room(self, message: Steer) -> SteerError | None:
        """Takes bytes for a steer. Returns the error if there is no room."""
        sizes = self._sizes()
        num_bytes = sum(sizes) + message.num_bytes
        if len(sizes) >= _MAX_QUEUED:
            limit = f"{_MAX_QUEUED} submissions wait on this WebSocket, the most allowed"
        elif sizes and num_bytes > self._max_queued_bytes:
            limit = (
                "submissions that wait on this WebSocket must be "
                f"<= {self._max_queued_bytes} bytes long together"
            )
        else:
            self._share.shrink_to(num_bytes)
            try:
                self._share.grow_to(num_bytes)
            except Overloaded as error:
                limit = str(error)
            else:
                return None
        return SteerError("too_many_pending_steers", limit)

    def _sizes(self) -> list[int]:
        """Returns the sizes of all waiting steers in bytes."""
        lists = [*(active.steers for active in self._active.values()), *self._waiting.values()]
        return [steer.num_bytes for steers in lists for steer in steers]

    def settle(self) -> None:
        """Shrinks the share of the body budget to the bytes of the steers that still wait."""
        self._share.shrink_to(sum(self._sizes()))


def _check_active(active: Active) -> SteerError | None:
    if active.create.has_conversation:
        return SteerError(
            "steering_not_supported", "a response in a conversation cannot be steered"
        )
    if not active.create.generates:
        return SteerError(
            "steering_not_supported", "a response that generates nothing cannot be steered"
        )
    if len(active.steers) >= MAX_STEERS:
        limit = f"{MAX_STEERS} submissions wait for this response, the most allowed"
        return SteerError("too_many_pending_steers", limit)
    return None


async def give_back(
    steers: list[QueuedSteer] | tuple[QueuedSteer, ...],
    error: SteerError,
    number: int,
    outbox: Outbox,
) -> None:
    for steer in steers:
        refused = RefusedSteer(
            previous_response_id=steer.response_id, input=steer.input, id=steer.id
        )
        await outbox.put(SteerFailed(number, refused, error))


def _has_come_to_something(response: ResponseObject) -> bool:
    if response.status == "completed":
        return True
    details = response.incomplete_details
    return details is not None and details.reason == "steered"


def _calls(response: ResponseObject) -> list[FunctionCallItem]:
    return [item for item in response.output if isinstance(item, FunctionCallItem)]
