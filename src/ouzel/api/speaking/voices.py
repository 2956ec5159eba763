"""Lists voices and voice models in the forms that Open WebUI and clients of Kokoro-FastAPI read:
GET /audio/voices and GET /audio/models.
"""

from starlette.requests import Request
from starlette.responses import Response

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import check_task
from ouzel.api.endpoint.operation import PREFIXES, Operation, QueryField
from ouzel.api.endpoint.services import Services
from ouzel.api.http.query import Query
from ouzel.api.http.send import json_response
from ouzel.wire.speech_events import VoiceList, VoiceModelList, VoiceNames, VoiceObject

_QUERY = (
    QueryField("model", {"type": "string"}, "Lists only the voices of this model."),
    QueryField("legacy", {"type": "boolean"}, "Lists names alone, as old clients read them."),
)


class Voices:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    async def list_voices(self, request: Request) -> Response:
        """Lists the voices of the models in memory, each name once."""
        query = Query(request.query_params, *(field.name for field in _QUERY))
        names = dict.fromkeys(
            voice for each in self._choose(query.text("model")) for voice in _list_voices(each)
        )
        if query.boolean("legacy"):
            return json_response(VoiceNames(list(names)))
        return json_response(VoiceList([VoiceObject(name, name) for name in names]))

    async def list_models(self, request: Request) -> Response:
        """Lists the names of the voice models, in memory or not."""
        here = {name for each in self._catalogue.list_for("speak") for name in each.model.names}
        away = await self._list_away()
        names = [name for name in self._catalogue.names if name in here or name in away]
        return json_response(VoiceModelList([VoiceObject(name, name) for name in names]))

    def _choose(self, name: str | None) -> list[Services]:
        if not name:
            return self._catalogue.list_for("speak")
        return [check_task(self._catalogue, self._catalogue.find(name), "speak")]

    async def _list_away(self) -> set[str]:
        on_demand = self._catalogue.on_demand
        if on_demand is None:
            return set()
        await on_demand.refresh()
        await on_demand.wait_for_files()
        managed = {name: on_demand.residents.find(name) for name in self._catalogue.away}
        return {
            name
            for name, each in managed.items()
            if each is not None and on_demand.describe(each).task == "speak"
        }


def _list_voices(services: Services) -> tuple[str, ...]:
    shape = services.model.engine.info.speech
    return () if shape is None else shape.voices


OPERATIONS = (
    Operation(
        method="get",
        path="/v1/audio/voices",
        prefixes=PREFIXES,
        summary="Lists the voices of the voice models in memory.",
        overall=lambda catalogue: Voices(catalogue).list_voices,
        query=_QUERY,
        answers=(VoiceList, VoiceNames),
    ),
    Operation(
        method="get",
        path="/v1/audio/models",
        prefixes=PREFIXES,
        summary="Lists the names of the voice models.",
        overall=lambda catalogue: Voices(catalogue).list_models,
        answers=(VoiceModelList,),
    ),
)
