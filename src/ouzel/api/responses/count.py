"""POST /responses/input_tokens says how long the prompt of a response would be."""

import msgspec
from starlette.requests import Request

from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.exchange import get_exchange
from ouzel.responses.preparer import Preparer
from ouzel.responses.request import ResponsesRequest


class InputTokensRequest(ResponsesRequest, kw_only=True):
    """Whatever a response may be asked for counts here as it does there."""


class InputTokens(msgspec.Struct, frozen=True, tag_field="object", tag="response.input_tokens"):
    input_tokens: int


class CountInputTokens:
    def __init__(self, preparer: Preparer) -> None:
        self._preparer = preparer

    async def count(self, request: Request, body: bytes) -> InputTokens:
        """Prepares the response, and makes nothing of it."""
        exchange = get_exchange(request.scope)
        prepared = await self._preparer.prepare(
            body,
            key_id=exchange.key_id,
            arrival_s=exchange.arrival_s,
            body_type=InputTokensRequest,
            only_counts=True,
        )
        return InputTokens(len(prepared.request.prompt.token_ids))


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/responses/input_tokens",
        prefixes=PREFIXES,
        summary="How many tokens the prompt of the same response would have.",
        endpoint=lambda services: services.make_body_endpoint(
            CountInputTokens(services.preparer).count
        ),
        bodies=(InputTokensRequest,),
        answers=(InputTokens,),
    ),
)
