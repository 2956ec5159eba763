"""Counts the tokens in the prompt of a message: POST /messages/count_tokens."""

from functools import partial

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from starlette.requests import Request

from ouzel.api.anthropic.context_management import CountedContext
from ouzel.api.anthropic.errors import ThreadUnsupported
from ouzel.api.anthropic.hosted_tools import HostedToolset, find_hints, read_hosted
from ouzel.api.anthropic.reading import decode_messages, read_messages
from ouzel.api.anthropic.request import CountTokensRequest
from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.exchange import get_exchange
from ouzel.config import LimitsConfig
from ouzel.generation import ServedModel
from ouzel.responses.hosted.kinds import HostedKinds, OpeningContext
from ouzel.responses.hosted.opened_tools import open_tools
from ouzel.wire.decode import parse_object
from ouzel.wire.offered_tools import HostedOffer
from ouzel.worker_threads import PreparationThreads


class TokenCount(msgspec.Struct, frozen=True):
    input_tokens: int  # tokens of the prompt after the context edits
    # set if the request manages the context
    context_management: CountedContext | UnsetType = UNSET


class CountTokens:
    def __init__(
        self,
        model: ServedModel,
        limits: LimitsConfig,
        threads: PreparationThreads,
        kinds: HostedKinds,
    ) -> None:
        """`kinds` are the tools that this server runs."""
        self._kinds = kinds
        self._model = model
        self._limits = limits
        self._threads = threads

    async def count(self, request: Request, body: bytes) -> TokenCount:
        """Counts the tokens; opens the tools that this server runs, whose functions count too."""
        counted = await self._threads.run(partial(self._count, body), len(body))
        if isinstance(counted, TokenCount):
            return counted
        key_id = get_exchange(request.scope).key_id
        tools = await open_tools(
            self._kinds,
            counted.entries,
            OpeningContext(key_id, frozenset(), ()),
            max_calls=None,
            is_offered=counted.is_offered,
        )
        try:
            offer = replace(tools.offer, types=frozenset())
            count = partial(self._count, body, offer)
            with_tools = await self._threads.run(count, len(body))
        finally:
            await tools.close()
        assert isinstance(with_tools, TokenCount)
        return with_tools

    def _count(self, body: bytes, offer: HostedOffer | None = None) -> TokenCount | HostedToolset:
        """Returns the count, or the tools that must be opened before and then make the `offer`."""
        request_body = decode_messages(parse_object(body), CountTokensRequest, self._model)
        if request_body.thread is not None:
            raise ThreadUnsupported(
                "must not be given: tokens are counted for a whole conversation", field="thread"
            )
        unlimited = msgspec.structs.replace(request_body, max_tokens=None)
        servers, entries = request_body.mcp_servers or (), request_body.tools or ()
        toolset = read_hosted(servers, entries, self._kinds)
        if toolset.entries and offer is None:
            return toolset
        offer = offer or HostedOffer(hints=find_hints(self._kinds))
        read = read_messages(unlimited, self._model, self._limits, toolset, offer)
        if read.edits is None:
            return TokenCount(len(read.prompt(self._model).token_ids))
        original = CountedContext(read.num_tokens(self._model))
        read.edit_context(self._model)
        return TokenCount(len(read.prompt(self._model).token_ids), original)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/messages/count_tokens",
        prefixes=PREFIXES,
        summary="Counts the tokens in the prompt of the same message.",
        endpoint=lambda services: services.make_body_endpoint(
            CountTokens(
                services.model,
                services.limits,
                services.threads,
                services.shared.hosted.for_messages(),
            ).count
        ),
        choice=choose_for("generate"),
        bodies=(CountTokensRequest,),
        answers=(TokenCount,),
        words="anthropic",
    ),
)
