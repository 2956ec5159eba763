"""Serves the OpenAPI document at GET /openapi.json. It is written anew when the models change."""

from collections.abc import Callable, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.document.openapi import build_document
from ouzel.api.endpoint.operation import Operation


class OpenApi:
    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        root_path: str,
        model_names: Callable[[], Sequence[str]],
    ) -> None:
        self._operations = operations
        self._root_path = root_path
        self._model_names = model_names
        # the names of the models, and the document for them
        self._written: tuple[Sequence[str], bytes] | None = None

    async def document(self, request: Request) -> Response:
        names = self._model_names()
        if self._written is None or self._written[0] != names:
            fields = build_document(self._operations, root_path=self._root_path, model_names=names)
            self._written = names, msgspec.json.encode(fields)
        return Response(self._written[1], media_type="application/json")
