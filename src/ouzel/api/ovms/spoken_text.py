"""Reads texts aloud as OVMS does: the answer is a complete WAV file of float32 samples.

As in OVMS, `response_format` and `instructions` have no effect, and the text may be empty.
"""

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.ovms.body import check_model_and_stream, parse_body
from ouzel.api.speaking.endpoint import SpeakingEndpoint
from ouzel.api.speaking.plan import SpeechPlan
from ouzel.api.speaking.speech import find_max_characters, find_voice_shape
from ouzel.errors import InvalidRequest
from ouzel.generation import ServedModel
from ouzel.speaking.options import SpeechOptions
from ouzel.wire.create_speech import (
    MAX_SPEED,
    MIN_SPEED,
    CreateSpeechRequest,
    check_length,
    choose_voice,
)
from ouzel.wire.decode import JsonObject, log_ignored

_DEFAULT_LANGUAGE = "en-us"
_READ = frozenset({"model", "input", "voice", "language", "speed", "stream"})


class OvmsSpokenText:
    """Reads OVMS's bodies."""

    def __init__(self, model: ServedModel, max_characters: int) -> None:
        self._model = model
        self._max_characters = max_characters

    def prepare(self, body: bytes) -> SpeechPlan:
        """Raises NotARequest, ModelNotFound and InvalidRequest, in OVMS's order."""
        parsed = parse_body(body)
        check_model_and_stream(parsed, self._model.names)
        if "input" not in parsed:
            raise InvalidRequest("input field is missing in JSON body", param="input")
        text = _read_text(parsed, "input", "")
        if "stream_format" in parsed:
            raise InvalidRequest("streaming is not supported", param="stream_format")
        options = SpeechOptions(
            text=text,
            voice=self._read_voice(parsed),
            speed=_read_speed(parsed),
            language=_read_text(parsed, "language", _DEFAULT_LANGUAGE),
        )
        check_length(text, self._max_characters)
        log_ignored(parsed.keys() - _READ)
        return SpeechPlan(options=options, format="wav_float", delivery="whole")

    def _read_voice(self, parsed: JsonObject) -> str:
        shape = find_voice_shape(self._model)
        voice = _read_text(parsed, "voice", choose_voice(shape))
        if "voice" in parsed and voice not in shape.voices:
            raise InvalidRequest(
                f"Requested voice '{voice[:100]}' not found in available voices", param="voice"
            )
        return voice


def _read_text(parsed: JsonObject, field: str, default: str) -> str:
    value = parsed.get(field, default)
    if not isinstance(value, str):
        raise InvalidRequest(f"{field} field is not a string", param=field)
    return value


def _read_speed(parsed: JsonObject) -> float:
    value = parsed.get("speed", 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest("speed field is not a number", param="speed")
    if not MIN_SPEED <= value <= MAX_SPEED:
        raise InvalidRequest(
            f"must be >= {MIN_SPEED} and <= {MAX_SPEED}, given {value}", field="speed"
        )
    return float(value)


def _make_speech(services: Services) -> SpeakingEndpoint:
    dialect = OvmsSpokenText(services.model, find_max_characters(services))
    return SpeakingEndpoint(services, dialect)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/audio/speech",
        prefixes=PREFIXES,
        profile="ovms",
        is_documented=False,
        endpoint=_make_speech,
        choice=choose_for("speak"),
        bodies=(CreateSpeechRequest,),
    ),
)
