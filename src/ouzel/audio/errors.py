"""Defines the errors of sound files. Every message names the field, the limit and the value."""

from ouzel.errors import InvalidRequest
from ouzel.extras import install_hint

FIELD = "file"


class InvalidAudio(InvalidRequest):
    """The sound file cannot be used. Its message begins with the name of the field, `file`."""

    def __init__(self, complaint: str) -> None:
        super().__init__(complaint, field=FIELD)


class UnknownAudioFormat(InvalidAudio):
    """The bytes begin like no sound file that this server reads, or have an unknown encoding."""


class AudioExtraMissing(InvalidAudio):
    """The format needs a package that is not installed."""

    def __init__(self, format_name: str) -> None:
        super().__init__(
            "must be a WAV file with PCM samples: to read other sound files this server needs its "
            f"extra audio ({install_hint('audio')}), given {format_name}"
        )


class NoAudioStream(InvalidAudio):
    """The file is complete but has pictures or texts only."""

    def __init__(self) -> None:
        super().__init__("must have sound, given a file without an audio stream")


class EmptyAudio(InvalidAudio):
    """The file has no bytes, or its stream has no samples."""

    def __init__(self, given: str) -> None:
        super().__init__(f"must have at least one sample of sound, given {given}")


class DamagedAudio(InvalidAudio):
    """The file is broken to an extent that leaves no sound."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"must be a complete sound file, given {detail}")


class AudioTooLarge(InvalidAudio):
    """The file has too many bytes."""

    def __init__(self, num_bytes: int, max_bytes: int) -> None:
        super().__init__(
            f"must have <= {max_bytes} bytes (max_audio_file_bytes), given {num_bytes}"
        )


class AudioTooLong(InvalidAudio):
    """The sound lasts too long. Decoding stops at the limit, so the whole length is unknown."""

    def __init__(self, max_seconds: float) -> None:
        super().__init__(
            f"must last <= {max_seconds:g} s (max_audio_seconds), given a longer sound"
        )


class AudioTooExpensive(InvalidAudio):
    """Decoding exceeds its limit of time or memory."""
