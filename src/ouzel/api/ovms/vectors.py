"""Serves embeddings and ranks like our own endpoints, with OVMS's checks of the body before."""

from collections.abc import Callable
from functools import partial

from starlette.requests import Request

from ouzel.api.endpoint.model_choice import ModelChoice, choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.http.body_endpoint import AnswerBody
from ouzel.api.openai.embeddings import Embeddings
from ouzel.api.ovms.body import check_model_and_stream, parse_body
from ouzel.api.ranking.rerank import Rerank


class OvmsVectors:
    def __init__(self, services: Services, answer: AnswerBody) -> None:
        """Calls `answer` with bodies that pass OVMS's checks."""
        self._names = services.model.names
        self._threads = services.threads
        self._answer = answer

    async def answer(self, request: Request, body: bytes) -> object:
        await self._threads.run(partial(self._check, body), len(body))
        return await self._answer(request, body)

    def _check(self, body: bytes) -> None:
        check_model_and_stream(parse_body(body), self._names)


def _operation(
    path: str, choice: ModelChoice, make_answer: Callable[[Services], AnswerBody]
) -> Operation:
    return Operation(
        method="post",
        path=path,
        prefixes=PREFIXES,
        profile="ovms",
        is_documented=False,
        endpoint=lambda services: services.make_body_endpoint(
            OvmsVectors(services, make_answer(services)).answer
        ),
        choice=choice,
    )


OPERATIONS = (
    _operation("/v1/embeddings", choose_for("embed"), lambda services: Embeddings(services).answer),
    _operation(
        "/v1/rerank", choose_for("score", "embed"), lambda services: Rerank(services).answer
    ),
)
