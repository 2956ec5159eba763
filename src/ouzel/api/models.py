"""GET /models and /models/{id}: what is served, how long its context is, what it can do."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ouzel.errors import ModelNotFound
from ouzel.generation import ServedModel


class ModelObject(msgspec.Struct, tag_field="object", tag="model"):
    id: str
    created: int
    max_model_len: int  # vLLM's name, which clients look for
    context_length: int  # the same, under OpenRouter's name
    capabilities: list[str]
    owned_by: str = "ouzel"


class ModelList(msgspec.Struct, tag_field="object", tag="list"):
    data: list[ModelObject]


class Models:
    def __init__(self, model: ServedModel) -> None:
        self._model = model

    async def list(self, request: Request) -> Response:
        return _json(ModelList([self._object(name) for name in self._model.names]))

    async def retrieve(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._model.names:
            raise ModelNotFound(f"the model {name[:100]!r} does not exist", param="model")
        return _json(self._object(name))

    def _object(self, name: str) -> ModelObject:
        max_model_len = self._model.engine.info.max_model_len
        can_chat = self._model.renderer.chat_template is not None
        return ModelObject(
            id=name,
            created=self._model.created,
            max_model_len=max_model_len,
            context_length=max_model_len,
            capabilities=["completion", "chat"] if can_chat else ["completion"],
        )


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
