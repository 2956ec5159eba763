"""OVMS's completions are OpenAI's with its reading of some fields; without a limit they go on to the model's end."""

from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.http.dialect import Answer
from ouzel.api.openai.completions import CompletionRequest, Completions
from ouzel.api.ovms.body import parse_body, read_fields
from ouzel.api.ovms.verbose import verbose_if_asked
from ouzel.config import LimitsConfig
from ouzel.generation import GenerationRequest, ServedModel
from ouzel.wire.decode import JsonObject


class OvmsCompletions:
    """Implements `Dialect`."""

    parse = staticmethod(parse_body)

    def __init__(self, model: ServedModel, limits: LimitsConfig) -> None:
        self._model = model
        self._openai = Completions(model, limits, default_max_tokens=None)

    def prepare(self, fields: JsonObject, arrival_s: float) -> tuple[list[GenerationRequest], Answer]:
        return self._openai.read(read_fields(fields, CompletionRequest, self._model.names), arrival_s)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/completions",
        prefixes=PREFIXES,
        profile="ovms",
        is_documented=False,
        endpoint=lambda services: services.generating(
            verbose_if_asked(OvmsCompletions(services.model, services.limits), services)
        ),
    ),
)
