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
from ouzel.api.site.headers import PAGE_HEADERS
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
_ABOUT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_ABOUT_HEADERS = PAGE_HEADERS | {"content-security-policy": _ABOUT_POLICY}


class Site:
    def __init__(self, catalogue: Catalogue, operations: Sequence[Operation]) -> None:
        shared = catalogue.shared
        self._catalogue = catalogue
        self._config = shared.config
        self._limits = shared.limits
        self._media = shared.media
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
            response.headers.update(PAGE_HEADERS)
            return response
        if self._playground is None:
            return await self.about(request)
        return await self._playground(request)

    async def about(self, request: Request) -> Response:
        example = next((make_example(each.model) for each in self._catalogue), None)
        page = index_page(
            self._index(request), example, self._operations, root_path=self._config.root_path
        )
        return Response(page, headers=_ABOUT_HEADERS, media_type="text/html")

    def _index(self, request: Request) -> Index:
        config, paths = self._config, {operation.path for operation in self._operations}
        models = [each.model for each in self._catalogue]
        url = f"{request.url.scheme}://{request.url.netloc}{config.root_path}"
        return Index(
            models=tuple(self._catalogue.names),
            demo_models=tuple(name for model in models if model.is_demo for name in model.names),
            max_model_len=models[0].engine.info.max_model_len if models else None,
            needs_api_key=bool(config.api_key),
            keeps_conversations=self._keeps_conversations,
            max_file_bytes=self._max_file_bytes,
            max_body_bytes=self._limits.max_body_bytes,
            max_media_bytes=self._media.max_media_bytes,
            max_images=self._media.max_images,
            max_videos=self._media.max_videos,
            max_audio_file_bytes=self._max_audio_file_bytes(),
            searches_files=self._searches_files(),
            takes_mcp_urls=self._catalogue.shared.hosted.takes_mcp_urls,
            has_admin_key=bool(config.admin_api_key),
            models_memory_bytes=self._models_memory(),
            max_logprobs=self._limits.max_logprobs,
            base_urls={name: url + end for name, path, end in _APIS if path in paths},
            openapi=f"{config.root_path}/openapi.json",
        )

    def _max_audio_file_bytes(self) -> int | None:
        speech = self._catalogue.shared.speech
        return None if speech is None else speech.max_file_bytes

    def _models_memory(self) -> int | None:
        on_demand = self._catalogue.on_demand
        return None if on_demand is None else on_demand.residents.limits.max_bytes

    def _searches_files(self) -> bool:
        search = self._catalogue.shared.file_search
        if search is None:
            return False
        try:
            search.embedder.choose_model()
        except OuzelError:
            return False
        return True
