"""Counts the tokens in the prompt of a response: POST /responses/input_tokens."""

import msgspec
from starlette.requests import Request

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.exchange import get_exchange
from ouzel.responses.preparer import Preparer
from ouzel.responses.request import ResponsesRequest


class InputTokensRequest(ResponsesRequest, kw_only=True):
    """Takes all fields of a response, and counts them as the response would."""


class InputTokens(msgspec.Struct, frozen=True, tag_field="object", tag="response.input_tokens"):
    input_tokens: int


class CountInputTokens:
    def __init__(self, preparer: Preparer) -> None:
        self._preparer = preparer

    async def count(self, request: Request, body: bytes) -> InputTokens:
        """Prepares the response, and generates nothing."""
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
        summary="Counts the tokens in the prompt of the same response.",
        endpoint=lambda services: services.make_body_endpoint(
            CountInputTokens(services.preparer).count
        ),
        choice=choose_for("generate"),
        bodies=(InputTokensRequest,),
        answers=(InputTokens,),
    ),
)
