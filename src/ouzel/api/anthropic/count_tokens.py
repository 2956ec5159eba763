"""Counts the tokens in the prompt of a message: POST /messages/count_tokens."""

from functools import partial

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request

from ouzel.api.anthropic.context_management import CountedContext
from ouzel.api.anthropic.errors import ThreadUnsupported
from ouzel.api.anthropic.reading import decode_messages, read_messages
from ouzel.api.anthropic.request import CountTokensRequest
from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.config import LimitsConfig
from ouzel.generation import ServedModel
from ouzel.wire.decode import parse_object
from ouzel.worker_threads import PreparationThreads


class TokenCount(msgspec.Struct, frozen=True):
    input_tokens: int  # tokens of the prompt after the context edits
    # set if the request manages the context
    context_management: CountedContext | UnsetType = UNSET


class CountTokens:
    def __init__(
        self, model: ServedModel, limits: LimitsConfig, threads: PreparationThreads
    ) -> None:
        self._model = model
        self._limits = limits
        self._threads = threads

    async def count(self, _: Request, body: bytes) -> TokenCount:
        return await self._threads.run(partial(self._count, body), len(body))

    def _count(self, body: bytes) -> TokenCount:
        request_body = decode_messages(parse_object(body), CountTokensRequest, self._model)
        if request_body.thread is not None:
            raise ThreadUnsupported(
                "must not be given: tokens are counted for a whole conversation", field="thread"
            )
        unlimited = msgspec.structs.replace(request_body, max_tokens=None)
        read = read_messages(unlimited, self._model, self._limits)
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
            CountTokens(services.model, services.limits, services.threads).count
        ),
        choice=choose_for("generate"),
        bodies=(CountTokensRequest,),
        answers=(TokenCount,),
        words="anthropic",
    ),
)
