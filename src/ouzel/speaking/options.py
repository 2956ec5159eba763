"""Holds the options of a request for speech."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpeechOptions:
    text: str
    # a voice of the model, a name of OpenAI's voices, or a mix such as "af_bella(2)+af_sky(1)"
    # (Kokoro-FastAPI's syntax)
    voice: str
    speed: float = 1.0  # 0.25 to 4.0
    language: str | None = None  # None: the language of the voice
