"""Defines OpenAI's events of speech."""

import msgspec


class SpeechUsage(msgspec.Struct):
    input_tokens: int  # phonemes that the model read
    output_tokens: int  # OpenAI's measure: 20 in a second of sound
    total_tokens: int


class SpeechDeltaEvent(msgspec.Struct, tag_field="type", tag="speech.audio.delta"):
    """A piece of the sound file."""

    audio: bytes  # base64 in JSON


class SpeechDoneEvent(msgspec.Struct, tag_field="type", tag="speech.audio.done"):
    usage: SpeechUsage


class VoiceObject(msgspec.Struct):
    """A voice in the form that Open WebUI reads."""

    id: str
    name: str


class VoiceList(msgspec.Struct):
    voices: list[VoiceObject]


class VoiceNames(msgspec.Struct):
    """The older form of Kokoro-FastAPI's list, for `legacy=true`."""

    voices: list[str]


class VoiceModelList(msgspec.Struct):
    models: list[VoiceObject]
