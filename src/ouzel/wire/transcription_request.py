"""Defines the fields of requests that turn speech into text, and makes options of them."""

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta

from ouzel.checkpoint.speech_languages import find_language
from ouzel.errors import InvalidRequest
from ouzel.transcription.options import (
    Chunking,
    SpeechTask,
    TranscriptionOptions,
    VoiceDetection,
)
from ouzel.wire.decode import JsonObject, decode_object, parse_object
from ouzel.wire.model_name import ModelName
from ouzel.wire.validation_errors import show_value

ResponseFormat = Literal["json", "text", "srt", "vtt", "verbose_json"]
Granularity = Literal["word", "segment"]


_DETECTION = VoiceDetection()
# Maps fields of OpenAI and vLLM that are refused to values without effect; numbers are floats.
_UNSUPPORTED: Mapping[str, tuple[object, ...]] = {
    "best_of": (1.0,),
    "frequency_penalty": (0.0,),
    "hotwords": (),
    "keywords": (),
    "known_speaker_names": (),
    "known_speaker_references": (),
    "languages": (),
    "length_penalty": (1.0,),
    "max_completion_tokens": (),
    "max_tokens": (),
    "min_p": (0.0,),
    "n": (1.0,),
    "presence_penalty": (0.0,),
    "repetition_penalty": (1.0,),
    "stop": (),
    "to_language": (),
    "top_k": (0.0, -1.0),
    "top_p": (1.0,),
    "use_beam_search": ("false",),
}
_INSTEAD: Mapping[str, str] = {
    "hotwords": "prompt",
    "include": "/v1/audio/transcriptions",
    "keywords": "prompt",
    "languages": "language",
    "timestamp_granularities": "/v1/audio/transcriptions",
    "to_language": "/v1/audio/translations, whose texts are English",
    "use_beam_search": "beam_size",
}


class ServerVad(msgspec.Struct):
    """OpenAI's parameters of the detection of speech."""

    type: Annotated[Literal["server_vad"], Meta(description="The only kind of detection.")]
    threshold: Annotated[
        float,
        Meta(ge=0, le=1, description="A frame with at least this probability is speech."),
    ] = _DETECTION.threshold
    prefix_padding_ms: Annotated[
        int, Meta(ge=0, le=10_000, description="Sound before speech that belongs to it.")
    ] = _DETECTION.prefix_padding_ms
    silence_duration_ms: Annotated[
        int, Meta(ge=0, le=10_000, description="A pause of this length may end a part.")
    ] = _DETECTION.silence_duration_ms


class SpeechFields(msgspec.Struct, kw_only=True):
    """The fields of transcriptions and translations."""

    foreign: ClassVar[Collection[str]] = ()  # fields of the other endpoint

    file: Annotated[
        str, Meta(description="The sound file.", extra_json_schema={"format": "binary"})
    ]
    model: ModelName = None
    language: Annotated[
        str | None,
        Meta(
            description="The language of the speech, as a code (en) or an English name (english); "
            "without it the model detects the language."
        ),
    ] = None
    prompt: Annotated[
        str | None,
        Meta(description="Text before the speech: it shows names, spelling and style."),
    ] = None
    response_format: Annotated[
        ResponseFormat | None,
        Meta(
            description="The form of the answer; json without it. With stream it is json, text or "
            "verbose_json."
        ),
    ] = None
    temperature: (
        Annotated[
            float,
            Meta(
                ge=0,
                le=1,
                description="0: the most likely text, and higher temperatures for a part whose "
                "text fails.",
            ),
        ]
        | None
    ) = None
    stream: Annotated[bool | None, Meta(description="Sends the text in server-sent events.")] = None
    chunking_strategy: Annotated[
        Literal["auto"] | ServerVad | None,
        Meta(
            description="Divides the sound at pauses: auto, or an object of the type server_vad. "
            "Parts are transcribed at the same time, without the text before them."
        ),
    ] = None
    seed: (
        Annotated[
            int,
            Meta(ge=-(2**63), le=2**63 - 1, description="Repeats the draws of a temperature."),
        ]
        | None
    ) = None
    beam_size: (
        Annotated[
            int,
            Meta(ge=1, le=16, description="Beams of a beam search, at temperature 0; 1: greedy."),
        ]
        | None
    ) = None
    priority: (
        Annotated[
            int,
            Meta(ge=-(2**31), lt=2**31, description="Requests with a smaller number run first."),
        ]
        | None
    ) = None


class TranscriptionRequest(SpeechFields, kw_only=True):
    timestamp_granularities: Annotated[
        list[Granularity] | None,
        Meta(
            description="Times in the answer, with verbose_json; the form has a field "
            "timestamp_granularities[] for each entry. Without it verbose_json has segments."
        ),
    ] = None
    include: Annotated[
        list[Literal["logprobs"]] | None,
        Meta(
            description="Adds the log probability of each token, with json; the form has a field "
            "include[]."
        ),
    ] = None


class TranslationRequest(SpeechFields, kw_only=True):
    foreign = ("include", "timestamp_granularities")


Fields = TypeVar("Fields", bound=SpeechFields)

# fields of which a form may have one text for a list of one entry, or a list in JSON
_LISTS = ("timestamp_granularities", "include")


def decode_speech_fields(body: bytes, body_type: type[Fields]) -> Fields:
    """Decodes the object of a form. Raises InvalidRequest."""
    fields = _read_structures(parse_object(body))
    for name in body_type.foreign:
        if fields.get(name):
            raise _refuse(name, fields[name])
    _refuse_unsupported(fields)
    return decode_object(fields, body_type)


def read_speech_options(fields: SpeechFields, task: SpeechTask) -> TranscriptionOptions:
    """Returns the options without times of words and logprobs. Raises InvalidRequest."""
    temperature = fields.temperature or 0.0
    return TranscriptionOptions(
        task=task,
        language=read_language(fields.language),
        prompt=fields.prompt or "",
        temperature=temperature,
        falls_back=temperature == 0,
        seed=fields.seed,
        chunking=_read_chunking(fields.chunking_strategy),
        detection=_read_detection(fields.chunking_strategy),
        beam_size=fields.beam_size or 1,
        priority=fields.priority or 0,
    )


def check_stream(fields: SpeechFields) -> None:
    """Raises InvalidRequest for a stream in a form that events do not have."""
    form = fields.response_format or "json"
    if fields.stream and form not in ("json", "text", "verbose_json"):
        raise InvalidRequest(
            f"must be json, text or verbose_json with stream, given {form!r}",
            field="response_format",
        )


def check_format(fields: SpeechFields) -> None:
    """Raises InvalidRequest for a response format that contradicts other fields."""
    check_stream(fields)
    form = fields.response_format or "json"
    if not isinstance(fields, TranscriptionRequest):
        return
    if fields.timestamp_granularities and form != "verbose_json":
        raise InvalidRequest(
            f"needs response_format to be verbose_json, given {form!r}",
            field="timestamp_granularities",
        )
    if fields.include and form != "json":
        raise InvalidRequest(f"needs response_format to be json, given {form!r}", field="include")


def _read_structures(fields: JsonObject) -> JsonObject:
    """Reads the texts of a form that stand for lists and objects."""
    read = dict(fields)
    for name in _LISTS:
        if isinstance(read.get(name), str):
            value = _parse(read[name])
            read[name] = value if isinstance(value, list) else [read[name]]
    strategy = read.get("chunking_strategy")
    if isinstance(strategy, str) and strategy != "auto":
        read["chunking_strategy"] = _parse(strategy)
    return read


def _parse(text: object) -> object:
    """Returns the JSON value of a text, or the text itself if it is not JSON."""
    assert isinstance(text, str)
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text


def _refuse_unsupported(fields: JsonObject) -> None:
    for name in fields.keys() & _UNSUPPORTED.keys():
        value = fields[name]
        neutral = _UNSUPPORTED[name]
        if value is None or value in neutral or _read_number(value) in neutral:
            continue
        raise _refuse(name, value)


def _read_number(value: object) -> object:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _refuse(name: str, value: object) -> InvalidRequest:
    hint = f" (use {_INSTEAD[name]})" if name in _INSTEAD else ""
    return InvalidRequest(f"is not supported here{hint}, given {show_value(value)}", field=name)


def read_language(text: str | None) -> str | None:
    """Returns the code of a language that a client names. Raises InvalidRequest."""
    if not text:
        return None
    code = find_language(text)
    if code is None:
        raise InvalidRequest(
            "must be the code or the English name of a language, such as en or english, "
            f"given {text[:100]!r}",
            field="language",
        )
    return code


def _read_chunking(strategy: Literal["auto"] | ServerVad | None) -> Chunking:
    return "sequential" if strategy is None else "vad"


def _read_detection(strategy: Literal["auto"] | ServerVad | None) -> VoiceDetection:
    if not isinstance(strategy, ServerVad):
        return _DETECTION
    return VoiceDetection(
        threshold=strategy.threshold,
        prefix_padding_ms=strategy.prefix_padding_ms,
        silence_duration_ms=strategy.silence_duration_ms,
    )
