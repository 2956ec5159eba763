"""Defines the way in which the speech of one request is sent."""

from dataclasses import dataclass
from typing import Literal

from ouzel.audio.writing.formats import FileFormat
from ouzel.speaking.options import SpeechOptions

# the bytes of the file while it is made, events with pieces of it, or the complete file
Delivery = Literal["audio", "events", "whole"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechPlan:
    options: SpeechOptions
    format: FileFormat
    delivery: Delivery
    volume: float = 1.0
    language_field: str = "language"  # the field that has the language, for errors
