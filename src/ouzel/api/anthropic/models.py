"""Lists the served models in Anthropic's form, for requests with `anthropic-version`.

The paths are GET /models and /models/{id}.
"""

from datetime import UTC, datetime
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.anthropic.errors import VERSION_HEADER
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.on_demand import ModelNotLoaded
from ouzel.api.endpoint.operation import PREFIXES, Operation, QueryField
from ouzel.api.http.query import Query
from ouzel.api.http.send import json_response
from ouzel.errors import InvalidRequest

_DEFAULT_LIMIT, _HIGHEST_LIMIT = 20, 1000
_ACTIVE = "active"


class ModelInfo(msgspec.Struct, tag="model", kw_only=True):
    id: str
    display_name: str
    created_at: str
    lifecycle: Literal["active"] = "active"
    max_input_tokens: int
    max_tokens: int


class ModelPage(msgspec.Struct):
    data: list[ModelInfo]
    has_more: bool
    first_id: str | None
    last_id: str | None


class AnthropicModels:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def list(self, request: Request) -> Response:
        query = Query(request.query_params, "limit", "after_id", "before_id", "lifecycle", "beta")
        limit = query.integer("limit", _DEFAULT_LIMIT, lowest=1, highest=_HIGHEST_LIMIT)
        names = self._catalogue.names
        if query.has("lifecycle") and _ACTIVE not in query.texts("lifecycle"):
            names = []
        names, has_more = _page(names, query, limit)
        first_id, last_id = (names[0], names[-1]) if names else (None, None)
        return json_response(
            ModelPage([self._info(name) for name in names], has_more, first_id, last_id)
        )

    async def retrieve(self, request: Request) -> Response:
        return json_response(self._info(request.path_params["name"]))

    def _info(self, name: str) -> ModelInfo:
        try:
            model = self._catalogue.find(name).model
        except ModelNotLoaded:
            return self._info_away(name)
        max_model_len = model.engine.info.max_model_len
        return ModelInfo(
            id=name,
            display_name=name,
            created_at=_iso(model.created),
            max_input_tokens=max_model_len,
            max_tokens=min(model.max_tokens_limit or max_model_len, max_model_len),
        )

    def _info_away(self, name: str) -> ModelInfo:
        """Describes a model that is not in memory by its files; 0: unknown."""
        on_demand = self._catalogue.on_demand
        managed = None if on_demand is None else on_demand.residents.find(name)
        assert on_demand is not None and managed is not None
        files = on_demand.describe(managed)
        max_model_len = files.max_model_len or 0
        return ModelInfo(
            id=name,
            display_name=name,
            created_at=_iso(files.created),
            max_input_tokens=max_model_len,
            max_tokens=max_model_len,
        )


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def _page(names: list[str], query: Query, limit: int) -> tuple[list[str], bool]:
    """Returns the names on a page, and whether there are more in that direction."""
    after_id, before_id = query.text("after_id"), query.text("before_id")
    if after_id is not None:
        names = names[_position(names, "after_id", after_id) + 1 :]
    if before_id is not None:
        names = names[: _position(names, "before_id", before_id)]
        return names[-limit:], len(names) > limit
    return names[:limit], len(names) > limit


def _position(names: list[str], field: str, name: str) -> int:
    if name not in names:
        raise InvalidRequest(f"must be the id of a model, given {name[:100]!r}", field=field)
    return names.index(name)


_QUERY = (
    QueryField(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": _HIGHEST_LIMIT},
        "Models in a page (with the header).",
    ),
    QueryField(
        "after_id",
        {"type": "string"},
        "The id of the model before the page (with the header).",
    ),
    QueryField(
        "before_id",
        {"type": "string"},
        "The id of the model after the page (with the header).",
    ),
)

OPERATIONS = (
    Operation(
        method="get",
        path="/v1/models",
        prefixes=PREFIXES,
        header=VERSION_HEADER,
        is_documented=False,
        summary="Lists the served models in Anthropic's form.",
        overall=lambda catalogue: AnthropicModels(catalogue).list,
        query=_QUERY,
        answers=(ModelPage,),
        words="anthropic",
    ),
    Operation(
        method="get",
        path="/v1/models/{name}",
        prefixes=PREFIXES,
        has_slashes=True,
        header=VERSION_HEADER,
        is_documented=False,
        summary="Describes a served model in Anthropic's form.",
        overall=lambda catalogue: AnthropicModels(catalogue).retrieve,
        answers=(ModelInfo,),
        words="anthropic",
    ),
)
