"""GET / says what this server is and how to reach it: browsers get a page, others JSON.

It is open to all, as it tells nothing that a client must not know before it has a key.
"""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.operation import Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.http.send import json_response
from ouzel.api.site.index import Index
from ouzel.api.site.page import index_page

_DOORS = (  # by whose clients: the path that tells whether there is such a door, and where their base URL ends
    ("OpenAI", "/v1/chat/completions", "/v1"),
    ("Anthropic", "/v1/messages", ""),
    ("Ollama", "/api/chat", ""),
    ("OpenVINO Model Server", "/v1/chat/completions", "/v3"),
    ("SageMaker (LMI)", "/invocations", ""),
)
_HEADERS = {"vary": "accept", "cache-control": "no-cache"}
_PAGE_HEADERS = _HEADERS | {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}


class Site:
    def __init__(self, services: Services, operations: Sequence[Operation]) -> None:
        self._model = services.model
        self._config = services.config
        self._operations = operations

    async def index(self, request: Request) -> Response:
        if "text/html" in request.headers.get("accept", ""):
            page = index_page(self._index(request), self._operations, root_path=self._config.root_path)
            return Response(page, headers=_PAGE_HEADERS, media_type="text/html")
        response = json_response(self._index(request))
        response.headers.update(_HEADERS)
        return response

    def _index(self, request: Request) -> Index:
        config, paths = self._config, {operation.path for operation in self._operations}
        url = f"{request.url.scheme}://{request.url.netloc}{config.root_path}"
        return Index(
            models=self._model.names,
            max_model_len=self._model.engine.info.max_model_len,
            needs_api_key=bool(config.api_key),
            base_urls={name: url + end for name, path, end in _DOORS if path in paths},
            openapi=f"{config.root_path}/openapi.json",
        )
