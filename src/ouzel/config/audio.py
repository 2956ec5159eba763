"""Defines the options of sounds: the length of files and of spoken texts, the cost of decoding."""

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from ouzel.config.option import option


class AudioConfig(msgspec.Struct, frozen=True, kw_only=True):
    heading: ClassVar[str] = "Sound files"

    max_speech_characters: Annotated[
        int,
        Meta(ge=1, le=2**24),
        option("Longest text that one request reads aloud; 32768 are about 40 minutes."),
    ] = 32768
    max_audio_seconds: Annotated[
        float, Meta(ge=0.1, le=7 * 86400), option("Longest sound of a file; 14400 are four hours.")
    ] = 14400.0
    max_audio_file_bytes: Annotated[
        int,
        Meta(ge=1024, le=2**31 - 1),
        option("Largest file of a sound. A WAV file of an hour in CD quality has 635 MB."),
    ] = 256 * 2**20
    audio_timeout_s: Annotated[
        float, Meta(gt=0, le=86400), option("Longest time to decode a sound file.")
    ] = 300.0
    max_audio_memory_bytes: Annotated[
        int,
        Meta(ge=16 * 2**20, le=2**40),
        option(
            "Memory for decoding one sound file. The decoded sound, 32 kB for a second, is in a "
            "temporary file."
        ),
    ] = 256 * 2**20
    max_audio_decoders: Annotated[
        int, Meta(ge=1, le=256), option("Most sound files that are decoded at the same time.")
    ] = 2
    vad_model: Annotated[
        str,
        option(
            "File of the model that finds speech in sounds: silero_vad_16k_sequence.onnx of the "
            "Python package silero-vad.",
            unset="pauses are found by the level of the sound",
        ),
    ] = ""
