"""Defines the errors of phonemes. The API renames the field by `InvalidRequest.at`."""

from collections.abc import Iterable

from ouzel.errors import EngineFailed, InvalidRequest
from ouzel.extras import install_hint

FIELD = "language"


class LanguageNotSpoken(InvalidRequest):
    """The server cannot pronounce the language. The message names the possible languages."""

    def __init__(self, language: str, possible: Iterable[str]) -> None:
        super().__init__(
            f"must have one of the languages {', '.join(possible)}, given {language}", field=FIELD
        )


class EspeakMissing(LanguageNotSpoken):
    """The language needs the command espeak-ng, and the server's PATH does not have it."""

    def __init__(self, language: str) -> None:
        InvalidRequest.__init__(
            self,
            "must have a language that this server can pronounce: all languages but English need "
            f"the command espeak-ng on its PATH (apt-get install espeak-ng), given {language}",
            field=FIELD,
        )


class SpeechExtraMissing(LanguageNotSpoken):
    """English needs the extra `speech` or espeak-ng, and the server has neither."""

    def __init__(self, language: str) -> None:
        InvalidRequest.__init__(
            self,
            "must have a language that this server can pronounce: English needs its extra speech "
            f"({install_hint('speech')}; its lexicons need Python < 3.13), or the command "
            f"espeak-ng, given {language}",
            field=FIELD,
        )


class PronunciationFailed(EngineFailed):
    """The command espeak-ng failed or exceeded its time limit."""
