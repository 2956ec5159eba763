"""POST / takes TEI's requests of every kind: clients that know only a server's address send all requests there.

huggingface_hub's InferenceClient is such a client.
"""

from starlette.requests import Request

from ouzel.api.endpoint.operation import Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_making import VectorMaker
from ouzel.api.http.exchange import get_exchange
from ouzel.api.tei.embed import Embed, TeiEmbedRequest
from ouzel.api.tei.errors import tei_style
from ouzel.api.tei.rerank import Rank, TeiRerank, TeiRerankRequest
from ouzel.api.tei.shape import by_work, is_given, shape_of
from ouzel.api.tei.similarity import Similarity, SimilarityRequest


class Root:
    def __init__(self, services: Services) -> None:
        self._making = VectorMaker(services)
        self._embed = Embed(services)
        self._similarity = Similarity(services)
        self._rerank = TeiRerank(services)

    async def answer(
        self, request: Request, body: bytes
    ) -> list[list[float]] | list[float] | list[Rank]:
        get_exchange(request.scope).error_style = tei_style
        shape = await self._making.read(lambda: shape_of(body), body)
        if is_given(shape.texts):
            return await self._rerank.answer(request, body)
        if bytes(shape.inputs).lstrip().startswith(b"{"):
            return await self._similarity.answer(request, body)
        return await self._embed.answer(request, body)


OPERATIONS = (
    Operation(
        method="post",
        path="/",
        summary="TEI: the vectors, similarities or ranks that the body asks for. Ranks are also made at /rerank.",
        endpoint=lambda services: services.make_body_endpoint(Root(services).answer),
        choice=by_work,
        bodies=(TeiEmbedRequest, SimilarityRequest, TeiRerankRequest),
        answers=(list[list[float]], list[float], list[Rank]),
        words="tei",
    ),
)
