"""Divides requests among several engines of one model, by the least expected work.

Rules
1. Each engine is restarted, watched and drained by itself (`client.py`). The pool takes requests
   while one engine does.
2. The routing policy chooses the engine by exact keys of the tokens, so that requests find the
   blocks that the engine has computed. An engine that died has lost its blocks.
3. A request stays with its engine. If the engine dies, the request ends with `error`: it may be the
   cause.
4. The first engine starts before the others: it stores the compressed weights, and the others read
   them.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress

import msgspec

from ouzel.engine_client.adapter_changes import PoolAdapters
from ouzel.engine_client.admission import Admission
from ouzel.engine_client.client import EngineClient, GivenTo
from ouzel.engine_client.engine_state import SHUTTING_DOWN, STOPPED, EngineState
from ouzel.errors import EngineFailed, EngineUnavailable
from ouzel.routing import PrefixPolicy, RequestKeys, RoutingPolicy, make_token_keys
from ouzel.types.engine_info import EngineInfo
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import StepOutput

_IN_ORDER = (  # the state of a pool is the first one in this order that a member has
    EngineState.READY,
    EngineState.LEAVING,
    EngineState.DRAINING,
    EngineState.RESTARTING,
    EngineState.STARTING,
    EngineState.FAILED,
    EngineState.CLOSED,
)

# An approximate number: fewer tokens would find more of short prompts, but each key takes time
# (benchmarks.pool).
_TOKENS_OF_A_KEY = 64


class EnginePool:
    """Implements `Engines` with several engines."""

    def __init__(self, members: Sequence[EngineClient], *, max_queued_requests: int = 256) -> None:
        self.members = members
        self._max_queued_requests = max_queued_requests
        self._admission = Admission(self)
        self._by_name = {str(number): member for number, member in enumerate(members)}
        # restarts that the policy knows of, by member
        self._num_restarts = dict.fromkeys(self._by_name, 0)
        self._policy: RoutingPolicy = PrefixPolicy()
        self._info: EngineInfo | None = None
        self._key_tokens = _TOKENS_OF_A_KEY
        self.adapters = PoolAdapters([member.adapters for member in members])
        self._owners: dict[str, EngineClient] = {}  # members by open request

    # Life

    async def start(self) -> EngineInfo:
        first, *others = self.members
        await first.start()
        infos = [first.info, *await asyncio.gather(*(member.start() for member in others))]
        max_model_len = min(info.max_model_len for info in infos)
        num_blocks = min(info.num_blocks for info in infos)
        # whole blocks
        self._key_tokens = max(1, _TOKENS_OF_A_KEY // first.info.block_size) * first.info.block_size
        self._policy = PrefixPolicy(
            max_blocks=num_blocks * len(infos), cache_tokens=num_blocks * first.info.block_size
        )
        self._info = msgspec.structs.replace(first.info, max_model_len=max_model_len)
        return self._info

    def leave(self) -> None:
        for member in self.members:
            member.leave()

    async def drain(self, timeout_s: float, *, reason: str = SHUTTING_DOWN) -> None:
        async with asyncio.TaskGroup() as group:
            for member in self.members:
                group.create_task(member.drain(timeout_s, reason=reason))
            group.create_task(self._wait_for_admitted(timeout_s))
        for request_id in tuple(self._owners):  # requests of members that had already drained
            self.abort(request_id)

    async def _wait_for_admitted(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._admission.empty()

    async def close(self, *, reason: str = STOPPED) -> None:
        await asyncio.gather(*(member.close(reason=reason) for member in self.members))

    @property
    def state(self) -> EngineState:
        states = {member.state for member in self.members}
        if self._info is None and not states & {EngineState.FAILED, EngineState.CLOSED}:
            return EngineState.STARTING
        return next(state for state in _IN_ORDER if state in states)

    @property
    def reason(self) -> str:
        """Returns the reason of a member that is in the pool's state."""
        state = self.state
        reasons = [member.reason for member in self.members if member.state is state]
        return reasons[0] if reasons else "the engines are loading the model"

    # Requests

    @property
    def info(self) -> EngineInfo:
        if self._info is None:
            raise EngineUnavailable(self.reason, retry_after_s=1.0)
        return self._info

    @property
    def num_unfinished(self) -> int:
        return self._admission.num_admitted

    @property
    def max_admitted(self) -> int:
        return len(self.members) * self.info.max_num_seqs + self._max_queued_requests

    @property
    def num_free(self) -> int:
        return self._admission.num_free

    @contextmanager
    def admit(self, num_requests: int = 1) -> Iterator[None]:
        with self._admission.places(num_requests):
            yield

    async def wait_until_unused(self) -> None:
        await self._admission.empty()

    async def submit(
        self,
        request: EngineRequest,
        given_to: GivenTo = None,
        accepted: asyncio.Event | None = None,
    ) -> AsyncGenerator[list[StepOutput], None]:
        if request.request_id in self._owners:
            raise EngineFailed(f"request_id {request.request_id!r} is in use")
        keys = self._keys(request)
        name = self._policy.choose(keys, self._list_available())[0]
        owner = self._owners[request.request_id] = self._by_name[name]
        ticket = self._policy.routed(keys, name)
        if given_to is not None:
            given_to(int(name))
        output_ids: list[int] = []  # tokens of the first choice
        has_begun = False
        try:
            async with aclosing(owner.submit(request, accepted=accepted)) as steps:
                async for step in steps:
                    if not has_begun and any(
                        output.token_ids or output.finish_reason is not None for output in step
                    ):
                        self._policy.first_token(ticket)
                        has_begun = True
                    for output in step:
                        if output.index == 0:
                            output_ids += output.token_ids
                    yield step
        finally:
            del self._owners[request.request_id]
            self._policy.ended(
                ticket, self._keys(request, output_ids, known=keys) if has_begun else None
            )

    def abort(self, request_id: str, index: int | None = None) -> None:
        if (owner := self._owners.get(request_id)) is not None:
            owner.abort(request_id, index)

    def _list_available(self) -> list[str]:
        """Returns the names of the engines that take requests; the policy forgets restarted ones.

        Raises EngineUnavailable if no engine takes requests.
        """
        for name, member in self._by_name.items():
            if member.num_restarts != self._num_restarts[name]:
                self._num_restarts[name] = member.num_restarts
                self._policy.forget(name)
        taking = [name for name, member in self._by_name.items() if member.takes_requests]
        if not taking:
            raise EngineUnavailable(self.reason, retry_after_s=2.0)
        return taking

    def _keys(
        self,
        request: EngineRequest,
        output_ids: Sequence[int] = (),
        known: RequestKeys | None = None,
    ) -> RequestKeys:
        return make_token_keys(
            [*request.prompt_token_ids, *output_ids],
            salt=f"{request.cache_salt}\0{request.adapter}",
            block_size=self._key_tokens,
            pictures=[(image.runs[0][0], image.digest) for image in request.images],
            known=known,
        )
