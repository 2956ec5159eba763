"""Reads a text aloud: POST /audio/speech."""

import msgspec

from ouzel.api.endpoint.model_choice import choose_for, read_fields
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.speaking.endpoint import SpeakingEndpoint
from ouzel.api.speaking.plan import Delivery, SpeechPlan
from ouzel.audio.writing.formats import MEDIA_TYPES, choose_format
from ouzel.config.audio import AudioConfig
from ouzel.generation import ServedModel
from ouzel.types.engine_info import VoiceShape
from ouzel.wire.create_speech import (
    CreateSpeechRequest,
    decode_create_speech,
    read_speech_options,
)
from ouzel.wire.options import check_model
from ouzel.wire.speech_events import SpeechDeltaEvent, SpeechDoneEvent


class OpenAiSpeech:
    """Reads OpenAI's bodies."""

    def __init__(self, model: ServedModel, max_characters: int) -> None:
        self._model = model
        self._max_characters = max_characters

    def prepare(self, body: bytes) -> SpeechPlan:
        fields = decode_create_speech(body)
        check_model(fields.model, self._model)
        shape = find_voice_shape(self._model)
        volume = fields.volume_multiplier
        return SpeechPlan(
            options=read_speech_options(fields, shape, max_characters=self._max_characters),
            format=choose_format(fields.response_format),
            delivery=_choose_delivery(fields),
            volume=1.0 if volume is None else volume,
            language_field="lang_code" if fields.lang_code else "language",
        )


def find_voice_shape(model: ServedModel) -> VoiceShape:
    """Returns the voices of a voice model."""
    shape = model.engine.info.speech
    assert shape is not None, "a voice model tells its voices"
    return shape


def find_max_characters(services: Services) -> int:
    """Returns the limit of a text; without voice models the limit of the option's default."""
    speech = services.shared.speech
    return AudioConfig().max_speech_characters if speech is None else speech.max_text_characters


def _choose_delivery(fields: CreateSpeechRequest) -> Delivery:
    if fields.stream_format == "sse":
        return "events"
    return "whole" if fields.stream is False else "audio"


class _StreamFormat(msgspec.Struct):
    stream_format: msgspec.Raw = msgspec.Raw()


def _asks_for_events(body: bytes) -> bool:
    fields = read_fields(body, _StreamFormat)
    return fields is not None and bytes(fields.stream_format) == b'"sse"'


def _make_speech(services: Services) -> SpeakingEndpoint:
    dialect = OpenAiSpeech(services.model, find_max_characters(services))
    return SpeakingEndpoint(services, dialect)


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/audio/speech",
        prefixes=PREFIXES,
        summary="Reads a text aloud; for voice models. The sound file is sent while it is made.",
        endpoint=_make_speech,
        choice=choose_for("speak"),
        bodies=(CreateSpeechRequest,),
        file_types=tuple(dict.fromkeys(MEDIA_TYPES.values())),
        chunks=(SpeechDeltaEvent, SpeechDoneEvent),
        wants_stream=_asks_for_events,
        own_tasks=frozenset({"speak"}),
    ),
)
