"""Finds the speech model of a session, and the transcriber of a model."""

from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.model_choice import find_for
from ouzel.api.endpoint.on_demand import find_name
from ouzel.api.endpoint.services import Services
from ouzel.api.endpoint.speech_services import SpeechTranscriber
from ouzel.api.speech.endpoint import check_speech_model


class SpeechModels:
    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self._transcribers: dict[Services, SpeechTranscriber] = {}
        catalogue.add_removal_listener(self._forget)

    async def check(self, name: str) -> None:
        """Raises ModelNotFound, EngineUnavailable, and InvalidRequest for another task.

        A model that is not in memory is not loaded; its task is checked at its first turn.
        """

        async def choose() -> Services:
            return self.choose(name)

        on_demand = self.catalogue.on_demand
        if on_demand is None:
            await choose()
        else:
            await find_name(on_demand, choose)

    def choose(self, name: str) -> Services:
        """Returns the model with that name, or the first speech model for an empty name."""
        services = find_for(self.catalogue, name, "transcribe")
        check_speech_model(services.model, self.catalogue.shared.speech)
        return services

    def find_transcriber(self, services: Services) -> SpeechTranscriber:
        if services not in self._transcribers:
            speech = check_speech_model(services.model, services.shared.speech)
            made = speech.make_transcriber(services.model, services.metrics)
            self._transcribers[services] = made
        return self._transcribers[services]

    def _forget(self, services: Services) -> None:
        self._transcribers.pop(services, None)
