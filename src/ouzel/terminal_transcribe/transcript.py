"""Asks an API to transcribe a file, and reads the answer's stream."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from ouzel.client.base import ApiClient, ApiFailure
from ouzel.client.chat_chunks import read_error
from ouzel.client.form import write_form
from ouzel.transcription.options import SpeechTask
from ouzel.wire.transcription_objects import (
    SegmentEvent,
    TextDeltaEvent,
    TextDoneEvent,
)

Event = TextDeltaEvent | SegmentEvent | TextDoneEvent
TellProgress = Callable[[float, float], None]  # seconds of sound that are done, and all

_PATHS: Mapping[SpeechTask, str] = {
    "transcribe": "/v1/audio/transcriptions",
    "translate": "/v1/audio/translations",
}


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """The request for each file, without the file."""

    task: SpeechTask
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The text of a file, and its segments in the order of their times."""

    segments: tuple[SegmentEvent, ...]
    done: TextDoneEvent

    @property
    def duration_s(self) -> float:
        """Returns the length of the sound; 0 if the server does not tell it."""
        return self.done.duration or 0.0


class _Failure(msgspec.Struct):
    error: msgspec.Raw


_event_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_decode_failure = msgspec.json.Decoder(_Failure).decode


async def transcribe(
    api: ApiClient,
    request: SpeechRequest,
    filename: str,
    content: bytes,
    tell: TellProgress,
) -> Transcript:
    """Returns the transcript of a sound file. Raises ApiFailure."""
    form, content_type = write_form(request.fields, filename, content)
    segments: list[SegmentEvent] = []
    async with api.events(_PATHS[request.task], form, content_type=content_type) as events:
        async for encoded in events:
            event = _read_event(encoded)
            if isinstance(event, SegmentEvent):
                segments.append(event)
                tell(event.end, event.duration)
            elif isinstance(event, TextDoneEvent):
                return Transcript(tuple(segments), event)
    raise ApiFailure("the answer broke off")


def _read_event(encoded: bytes) -> Event:
    """Raises ApiFailure for an error, and for an event that no transcription has."""
    try:
        return _event_decoder.decode(encoded)
    except msgspec.MsgspecError as error:
        try:
            failure = _decode_failure(encoded)
        except msgspec.MsgspecError:
            raise ApiFailure(f"the server's answer cannot be read: {error}") from error
        raise ApiFailure(read_error(msgspec.json.decode(failure.error))) from error
