"""Serves the playground to browsers at GET /, and JSON about the server to other clients.

The page about the server is at /about, and at / without a playground. All of it is open, because it
shows only facts that a client needs before it has a key.
"""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.example import make_example
from ouzel.api.endpoint.operation import Operation
from ouzel.api.http.send import json_response
from ouzel.api.site.index import Index
from ouzel.api.site.page import index_page
from ouzel.api.site.playground import PlaygroundPage
from ouzel.errors import OuzelError

# clients, the path whose endpoint serves them, and the end of their base URL
_APIS = (
    ("OpenAI", "/v1/chat/completions", "/v1"),
    ("Anthropic", "/v1/messages", ""),
    ("Ollama", "/api/chat", ""),
    ("OpenVINO Model Server", "/v1/chat/completions", "/v3"),
    ("SageMaker (LMI)", "/invocations", ""),
)
_HEADERS = {"vary": "accept, accept-language, cookie", "cache-control": "no-cache"}
_PAGE_HEADERS = _HEADERS | {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Site:
    def __init__(self, catalogue: Catalogue, operations: Sequence[Operation]) -> None:
        shared = catalogue.shared
        self._catalogue = catalogue
        self._config = shared.config
        self._max_logprobs = shared.limits.max_logprobs
        self._keeps_conversations = shared.store is not None
        self._max_file_bytes = None if shared.store is None else shared.max_file_bytes
        self._operations = operations
        root_path = self._config.root_path
        self._playground = (
            PlaygroundPage("index.html", root_path=root_path) if self._config.playground else None
        )

    async def index(self, request: Request) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            response = json_response(self._index(request))
        elif self._playground is None:
            return await self.about(request)
        else:
            response = await self._playground(request)
        response.headers.update(_HEADERS)
        return response

    async def about(self, request: Request) -> Response:
        example = next((make_example(each.model) for each in self._catalogue), None)
        page = index_page(
            self._index(request), example, self._operations, root_path=self._config.root_path
        )
        return Response(page, headers=_PAGE_HEADERS, media_type="text/html")

    def _index(self, request: Request) -> Index:
        config, paths = self._config, {operation.path for operation in self._operations}
        models = [each.model for each in self._catalogue]
        url = f"{request.url.scheme}://{request.url.netloc}{config.root_path}"
        return Index(
            models=tuple(self._catalogue.names),
            max_model_len=models[0].engine.info.max_model_len if models else None,
            needs_api_key=bool(config.api_key),
            keeps_conversations=self._keeps_conversations,
            max_file_bytes=self._max_file_bytes,
            searches_files=self._searches_files(),
            max_logprobs=self._max_logprobs,
            base_urls={name: url + end for name, path, end in _APIS if path in paths},
            openapi=f"{config.root_path}/openapi.json",
        )

    def _searches_files(self) -> bool:
        search = self._catalogue.shared.file_search
        if search is None:
            return False
        try:
            search.embedder.choose_model()
        except OuzelError:
            return False
        return True
