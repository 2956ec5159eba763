"""Defines the fields of requests that read a text aloud, and makes options of them.

The fields are OpenAI's, and fields that clients of Kokoro-FastAPI and vLLM send.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ouzel.audio.writing.formats import SpeechFormat
from ouzel.errors import InvalidRequest
from ouzel.speaking.options import SpeechOptions
from ouzel.types.engine_info import VoiceShape
from ouzel.wire.decode import JsonObject, decode_object, parse_object
from ouzel.wire.model_name import ModelName
from ouzel.wire.validation_errors import show_value

_BEST_VOICE = "af_heart"  # the voice of Kokoro with the best grade
MIN_SPEED, MAX_SPEED = 0.25, 4.0
_MAX_VOLUME = 10.0

# Maps fields of other servers that are refused to values without effect.
_UNSUPPORTED: Mapping[str, tuple[object, ...]] = {
    "cfg_weight": (),
    "download_format": (),
    "exaggeration": (),
    "ref_audio": (),
    "ref_text": (),
    "return_download_link": (False,),
    "return_timestamps": (False,),
    "speaker_embedding": (),
    "task_type": (),
    "temperature": (),
    "x_vector_only_mode": (False,),
}
# values of Kokoro-FastAPI's `normalization_options` for which its texts are normalised as here
_NORMALIZATION: Mapping[str, bool] = {
    "normalize": True,
    "unit_normalization": False,
    "url_normalization": True,
    "email_normalization": True,
    "optional_pluralization_normalization": True,
    "phone_normalization": True,
    "replace_remaining_symbols": True,
}


class VoiceId(msgspec.Struct):
    """A voice as an object, as OpenAI's client may send it."""

    id: Annotated[str, Meta(min_length=1, description="The name of the voice.")]


class CreateSpeechRequest(msgspec.Struct, kw_only=True):
    input: Annotated[
        str,
        Meta(
            min_length=1,
            description="The text; --max-speech-characters limits its length.",
        ),
    ]
    model: ModelName = None
    voice: Annotated[
        Annotated[str, Meta(min_length=1)] | VoiceId | None,
        Meta(
            description="A voice of the model, one of OpenAI's names such as alloy, a mix such as "
            "af_bella(2)+af_sky(1), or an object with the name in id; without it af_heart, or the "
            "model's first voice."
        ),
    ] = None
    response_format: Annotated[
        SpeechFormat | None,
        Meta(
            description="The format of the sound. pcm: 16-bit integers, little-endian. Without it "
            "mp3, or wav on a server without the extra audio."
        ),
    ] = None
    speed: (
        Annotated[
            float, Meta(ge=MIN_SPEED, le=MAX_SPEED, description="2 speaks twice as fast as 1.")
        ]
        | None
    ) = None
    instructions: Annotated[
        str | None,
        Meta(description="Must be blank: voice models of this server follow no instructions."),
    ] = None
    stream_format: Annotated[
        Literal["audio", "sse"] | None,
        Meta(description="audio: the bytes of the file; sse: events with pieces of it in base64."),
    ] = None
    stream: Annotated[
        bool | None,
        Meta(
            description="false sends the file when it is complete, with its length; otherwise it "
            "is sent while it is made."
        ),
    ] = True
    language: Annotated[
        str | None,
        Meta(description="The language of the text, such as en-us; without it the voice's."),
    ] = None
    lang_code: Annotated[
        str | None,
        Meta(description="Kokoro-FastAPI's name of language; its letters such as a work too."),
    ] = None
    volume_multiplier: (
        Annotated[
            float,
            Meta(ge=0, le=_MAX_VOLUME, description="Multiplies the samples; peaks are clipped."),
        ]
        | None
    ) = None
    normalization_options: Annotated[
        dict[str, bool | None] | None,
        Meta(description="Kokoro-FastAPI's; only its defaults are accepted."),
    ] = None


def decode_create_speech(body: bytes) -> CreateSpeechRequest:
    """Decodes a body. Raises InvalidRequest."""
    parsed = parse_object(body)
    _refuse_unsupported(parsed)
    fields = decode_object(parsed, CreateSpeechRequest)
    _check_fields(fields)
    return fields


def read_speech_options(
    fields: CreateSpeechRequest, shape: VoiceShape, *, max_characters: int
) -> SpeechOptions:
    """Returns the options for a model. Raises InvalidRequest for a text over the limit."""
    check_length(fields.input, max_characters)
    voice = fields.voice.id if isinstance(fields.voice, VoiceId) else fields.voice
    return SpeechOptions(
        text=fields.input,
        voice=voice or choose_voice(shape),
        speed=1.0 if fields.speed is None else fields.speed,
        language=fields.language or fields.lang_code or None,
    )


def choose_voice(shape: VoiceShape) -> str:
    """Returns the voice for requests that name none."""
    return _BEST_VOICE if _BEST_VOICE in shape.voices else shape.voices[0]


def check_length(text: str, max_characters: int) -> None:
    """Raises InvalidRequest for a text with more than `max_characters`."""
    if len(text) > max_characters:
        raise InvalidRequest(
            f"must have <= {max_characters} characters (max_speech_characters), given {len(text)}",
            field="input",
        )


def _refuse_unsupported(parsed: JsonObject) -> None:
    for name in sorted(parsed.keys() & _UNSUPPORTED.keys()):
        value = parsed[name]
        if value is not None and value not in _UNSUPPORTED[name]:
            raise InvalidRequest(
                f"is not supported by this server, given {show_value(value)}", field=name
            )


def _check_fields(fields: CreateSpeechRequest) -> None:
    if (fields.instructions or "").strip():
        raise InvalidRequest(
            "must be blank: this model follows no instructions, given "
            f"{show_value(fields.instructions)}",
            field="instructions",
        )
    if fields.stream is False and fields.stream_format == "sse":
        raise InvalidRequest("must not be false with the stream_format sse", field="stream")
    if fields.language and fields.lang_code:
        raise InvalidRequest(
            f"must be absent beside language, given {show_value(fields.lang_code)}",
            field="lang_code",
        )
    for name, value in (fields.normalization_options or {}).items():
        accepted = _NORMALIZATION.get(name)
        if accepted is not None and value is not None and value is not accepted:
            raise InvalidRequest(
                f"must be {show_value(accepted)}, given {show_value(value)}",
                field=f"normalization_options.{name}",
            )
