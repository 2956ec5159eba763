"""Speaks to a server over realtime sessions of the official client.

Every event is checked against the client's own types. The fake transcriber says the words that
the test has given it for each turn.
"""

import json
from base64 import b64encode
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import openai
import pydantic
from numpy.typing import NDArray
from openai.resources.realtime.realtime import RealtimeConnection
from openai.types.realtime import RealtimeServerEvent

from ouzel.transcription.events import TranscriptionEvent
from ouzel.transcription.options import TranscriptionOptions
from tests.api.requests import Json
from tests.api.responses.strict import check
from tests.api.speech.listening import ListeningServer, Repeater, WrittenSound, listening_server

RATE = 24_000
_EVENT: pydantic.TypeAdapter[RealtimeServerEvent] = pydantic.TypeAdapter(RealtimeServerEvent)
# RealtimeTranscriptionSessionCreateResponse has them, and the sessions of events have them not
_BEYOND_THE_TYPES = ("id", "object", "expires_at")

_NO_LIMITS: Any = {"ping_interval": None, "open_timeout": None}  # the client's type is narrower


class TurnRepeater(Repeater):
    """Transcribes each turn by the next of `texts`; `one two` if there is none."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = deque[str]()
        self.durations_s: list[float] = []

    async def transcribe(
        self, sound: Any, options: TranscriptionOptions, **request: Any
    ) -> AsyncGenerator[TranscriptionEvent, None]:  # the parameters of `Repeater.transcribe`
        samples = sound.samples(0, sound.num_samples)
        self.durations_s.append(len(samples) / 16_000)
        written = WrittenSound((self.texts.popleft() if self.texts else "one two").split())
        async for event in super().transcribe(written, options, **request):
            yield event


class Speaker:
    def __init__(self, connection: RealtimeConnection) -> None:
        self.connection = connection

    def send(self, kind: str, **fields: object) -> None:
        self.connection.send_raw(json.dumps({"type": kind, **fields}))

    def update(self, **audio_input: object) -> None:
        session = {"type": "transcription", "audio": {"input": audio_input}}
        self.send("session.update", session=session)

    def append(self, samples: NDArray[np.float64], event_id: str | None = None) -> None:
        data = (samples * 32767).astype("<i2").tobytes()
        fields = {} if event_id is None else {"event_id": event_id}
        self.send("input_audio_buffer.append", audio=b64encode(data).decode(), **fields)

    def event(self) -> Any:  # a union of many classes, of which each test expects one
        fields = json.loads(self.connection.recv_bytes())
        for name in _BEYOND_THE_TYPES if fields["type"].startswith("session.") else ():
            assert fields["session"].pop(name), name
        event = _EVENT.validate_json(json.dumps(fields))
        check(event)
        return event

    def until(self, kind: str) -> list[Any]:
        events = [self.event()]
        while events[-1].type != kind:
            events.append(self.event())
        return events

    def error(self) -> Json:
        event = self.event()
        assert event.type == "error", event
        fields: Json = event.error.to_dict()
        return {name: value for name, value in fields.items() if value is not None}


@contextmanager
def speak(listening: ListeningServer, *, key: str = "none", **query: object) -> Iterator[Speaker]:
    """Opens a session, whose first event the test reads."""
    url = f"{listening.url}/v1"
    with (
        openai.OpenAI(base_url=url, api_key=key, max_retries=0, timeout=None) as client,
        client.realtime.connect(
            extra_query=query or {"intent": "transcription"},
            websocket_connection_options=_NO_LIMITS,
        ) as connection,
    ):
        yield Speaker(connection)


@contextmanager
def live_server(**setup: Any) -> Iterator[tuple[ListeningServer, TurnRepeater]]:
    """Starts a server; `setup` has the fields of `listening_server`."""
    repeater = TurnRepeater()
    with listening_server(repeater=repeater, **setup) as listening:
        yield listening, repeater


def make_tone(duration_s: float, level: float = 0.3) -> NDArray[np.float64]:
    times = np.arange(round(duration_s * RATE)) / RATE
    return level * np.sin(2 * np.pi * 220 * times)


def make_silence(duration_s: float) -> NDArray[np.float64]:
    return np.random.default_rng(0).normal(0, 1e-4, round(duration_s * RATE))
