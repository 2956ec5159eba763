"""Deletes the files of a model with Ollama's path, DELETE /api/delete; needs the admin key.

Ollama unloads a loaded model first. This server refuses with a 409, because other users may have
open requests to the model, and the operator can unload it.
"""

from ouzel.api.endpoint.model_changes import ModelChanges
from ouzel.api.endpoint.operation import Operation
from ouzel.api.ollama.model_name import find_served_name, strip_defaults
from ouzel.api.ollama.pull import OllamaModelRequest
from ouzel.api.openai.admin_endpoint import AdminEndpoint, AdminRequest
from ouzel.errors import InvalidRequest
from ouzel.wire.decode import decode_body

PATH = "/api/delete"


class OllamaDeleteRequest(OllamaModelRequest, kw_only=True):
    pass


def _make_deleting(changes: ModelChanges) -> AdminEndpoint:
    async def delete(request: AdminRequest) -> None:
        given = decode_body(request.body, OllamaDeleteRequest).given_name
        if not given:
            raise InvalidRequest("must be the name of a model, given ''", field="model")
        served = find_served_name(given, changes.catalogue.names)
        await changes.delete(served or strip_defaults(given))

    return AdminEndpoint(changes, delete)


OPERATIONS = (
    Operation(
        method="delete",
        path=PATH,
        summary="Ollama: deletes the files of a model that is not loaded; needs the admin key.",
        changing=_make_deleting,
        bodies=(OllamaDeleteRequest,),
        words="ollama",
    ),
)
