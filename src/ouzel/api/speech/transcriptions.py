"""Turns speech into text: POST /audio/transcriptions, and into English text: POST
/audio/translations.
"""

from dataclasses import replace

from ouzel.api.endpoint.model_choice import choose_for
from ouzel.api.endpoint.operation import PREFIXES, Operation
from ouzel.api.endpoint.services import Services
from ouzel.api.speech.answer import OpenAiAnswer
from ouzel.api.speech.endpoint import SpeechEndpoint
from ouzel.generation import ServedModel
from ouzel.transcription.options import TranscriptionOptions
from ouzel.transcription.transcriber import check_word_times
from ouzel.wire.options import check_model
from ouzel.wire.transcription_objects import (
    SegmentEvent,
    TextDeltaEvent,
    TextDoneEvent,
    TranscriptionObject,
    VerboseTranscription,
)
from ouzel.wire.transcription_request import (
    TranscriptionRequest,
    TranslationRequest,
    check_format,
    decode_speech_fields,
    read_speech_options,
)


class Transcriptions:
    """Reads forms of OpenAI's transcriptions."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model

    def prepare(self, body: bytes) -> tuple[TranscriptionOptions, OpenAiAnswer]:
        fields = decode_speech_fields(body, TranscriptionRequest)
        check_model(fields.model, self._model)
        check_format(fields)
        options = read_speech_options(fields, "transcribe")
        has_words = "word" in (fields.timestamp_granularities or ())
        if has_words:
            check_word_times(self._model)
        options = replace(options, has_words=has_words, num_logprobs=0 if fields.include else None)
        return options, OpenAiAnswer(fields, options, self._model)


class Translations:
    """Reads forms of OpenAI's translations."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model

    def prepare(self, body: bytes) -> tuple[TranscriptionOptions, OpenAiAnswer]:
        fields = decode_speech_fields(body, TranslationRequest)
        check_model(fields.model, self._model)
        check_format(fields)
        options = read_speech_options(fields, "translate")
        return options, OpenAiAnswer(fields, options, self._model)


def _make_transcriptions(services: Services) -> SpeechEndpoint:
    return SpeechEndpoint(services, Transcriptions(services.model))


def _make_translations(services: Services) -> SpeechEndpoint:
    return SpeechEndpoint(services, Translations(services.model))


OPERATIONS = (
    Operation(
        method="post",
        path="/v1/audio/transcriptions",
        prefixes=PREFIXES,
        summary="Turns speech into text, as multipart/form-data; for speech models. Speech that "
        "still arrives is sent to a WebSocket at /v1/realtime: docs/how-to/transcriptions.md.",
        endpoint=_make_transcriptions,
        choice=choose_for("transcribe"),
        form_body=TranscriptionRequest,
        answers=(TranscriptionObject, VerboseTranscription),
        chunks=(TextDeltaEvent, SegmentEvent, TextDoneEvent),
        own_tasks=frozenset({"transcribe"}),
    ),
    Operation(
        method="post",
        path="/v1/audio/translations",
        prefixes=PREFIXES,
        summary="Turns speech into English text, as multipart/form-data; for speech models.",
        endpoint=_make_translations,
        choice=choose_for("transcribe"),
        form_body=TranslationRequest,
        answers=(TranscriptionObject, VerboseTranscription),
        chunks=(TextDeltaEvent, SegmentEvent, TextDoneEvent),
        own_tasks=frozenset({"transcribe"}),
    ),
)
