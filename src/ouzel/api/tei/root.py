"""Takes all kinds of TEI's requests: POST /.

Clients that know only the address of a server, as huggingface_hub's InferenceClient, send all
requests there.
"""

from starlette.requests import Request

from ouzel.api.endpoint.operation import Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.vector_maker import VectorMaker
from ouzel.api.http.exchange import get_exchange
from ouzel.api.tei.embed import Embed, TeiEmbedRequest
from ouzel.api.tei.errors import tei_style
from ouzel.api.tei.rerank import Rank, TeiRerank, TeiRerankRequest
from ouzel.api.tei.shape import choose_by_work, is_present, read_shape
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
        shape = await self._making.read(lambda: read_shape(body), body)
        if is_present(shape.texts):
            return await self._rerank.answer(request, body)
        if bytes(shape.inputs).lstrip().startswith(b"{"):
            return await self._similarity.answer(request, body)
        return await self._embed.answer(request, body)


OPERATIONS = (
    Operation(
        method="post",
        path="/",
        summary="TEI: makes vectors, similarities or ranks, by the fields of the body. /rerank "
        "also "
        "makes ranks.",
        endpoint=lambda services: services.make_body_endpoint(Root(services).answer),
        choice=choose_by_work,
        bodies=(TeiEmbedRequest, SimilarityRequest, TeiRerankRequest),
        answers=(list[list[float]], list[float], list[Rank]),
        words="tei",
    ),
)
