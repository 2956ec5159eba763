"""Responses that are being made on one WebSocket can be cancelled, or steered by more input.

steer ─> accepted ─> the item being written is done, or the response ─> a successor that reads the input
                                                                    └─> pending: the client owes a tool's output
                                                                    └─> failed: the input is given back
"""

from dataclasses import dataclass, field
from dataclasses import replace as replaced

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
from ouzel.api.responses.socket.steers import QueuedSteer, fault_of_steering
from ouzel.errors import InvalidRequest, Overloaded
from ouzel.responses.output_items import FunctionCallItem, new_id
from ouzel.responses.response_object import ResponseObject
from ouzel.responses.run import Run

MAX_STEERS = 16  # that wait for one response
_MAX_QUEUED = 64  # and on one WebSocket


@dataclass(slots=True)
class Active:
    """The response is being made."""

    run: Run
    create: Create
    num_sent: int = 0  # events
    steers: list[QueuedSteer] = field(default_factory=list)

    @property
    def last_number(self) -> int:
        return max(self.num_sent - 1, 0)


class Steering:
    def __init__(self, *, max_queued_bytes: int, share: Share) -> None:
        """`share` is what the submissions that wait take of the server's bytes for bodies."""
        self._max_queued_bytes = max_queued_bytes
        self._share = share
        self._active: dict[str, Active] = {}
        self._ended: dict[str, None] = {}  # ids, oldest first
        self._waiting: dict[
            str, list[QueuedSteer]
        ] = {}  # for tools' outputs, by the response that called

    def begin(self, run: Run, create: Create) -> Active:
        active = self._active[run.id] = Active(run, create)
        return active

    def end(self, active: Active) -> None:
        """What has been queued until then is in its steers, and nothing more will be."""
        del self._active[active.run.id]
        self._ended[active.run.id] = None
        if len(self._ended) > 1000:
            del self._ended[next(iter(self._ended))]

    def cancel(self, response_id: str) -> None:
        active = self._active.get(response_id)
        if active is None:
            field_name = "response_id"
            of_one = "of a response that is being made on this WebSocket"
            raise InvalidRequest(f"must be {of_one}, given {response_id[:100]}", field=field_name)
        active.run.cancel()

    def lane_of(self, response_id: str) -> str | None:
        active = self._active.get(response_id)
        return None if active is None else active.create.stream_id

    async def steer(self, message: Steer, outbox: Outbox) -> None:
        """`outbox` is that of the lane that the response is made in."""
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

    def with_waiting(self, create: Create) -> Create:
        """Returns the request with the input that waited for the response it continues."""
        steers = self._waiting.pop(str(create.previous_response_id), [])
        return replaced(create, steers=tuple(steers)) if steers else create

    def wait_again(self, create: Create) -> None:
        """Keeps the steers of a request that has not become a response."""
        if create.steers:
            self._waiting[create.steers[0].response_id] = list(create.steers)

    async def follow_up(self, active: Active, outbox: Outbox) -> Create | None:
        """Returns, after its end, the request that commits what has been queued, if the server makes it."""
        response = active.run.response
        if not active.steers:
            return None
        if not _has_come_to_something(response):
            why = f"the response is {response.status}: nothing follows it"
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
        return replaced(
            active.create, previous_response_id=response.id, follows=response.id, steers=steers
        )

    def _refusal(self, message: Steer, active: Active | None) -> SteerError | None:
        fault = fault_of_steering(message.input)
        if fault is not None:
            return SteerError("invalid_input", fault)
        if active is not None:
            return _refusal_by(active) or self._take_room(message)
        if message.response_id in self._ended:
            why = "the response has ended: continue it by response.create"
            return SteerError("response_already_completed", why)
        return SteerError("response_not_found", "no such response is being made on this WebSocket")

    def _take_room(self, message: Steer) -> SteerError | None:
        """Returns why there is none."""
        sizes = self._sizes()
        num_bytes = sum(sizes) + message.num_bytes
        if len(sizes) >= _MAX_QUEUED:
            limit = f"{_MAX_QUEUED} submissions wait on this WebSocket, which is the limit"
        elif sizes and num_bytes > self._max_queued_bytes:
            limit = f"what waits on this WebSocket must be <= {self._max_queued_bytes} bytes long together"
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
        """Of all that waits, in bytes."""
        lists = [*(active.steers for active in self._active.values()), *self._waiting.values()]
        return [steer.num_bytes for steers in lists for steer in steers]

    def settle(self) -> None:
        """A lane has come to its end: what still waits is what the responses of other lanes, or tools, are for."""
        self._share.shrink_to(sum(self._sizes()))


def _refusal_by(active: Active) -> SteerError | None:
    if active.create.has_conversation:
        return SteerError(
            "steering_not_supported", "a response in a conversation cannot be steered"
        )
    if not active.create.generates:
        return SteerError(
            "steering_not_supported", "a response that generates nothing cannot be steered"
        )
    if len(active.steers) >= MAX_STEERS:
        limit = f"{MAX_STEERS} submissions wait for this response, which is the limit"
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
