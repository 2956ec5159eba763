"""Starts a server with a model that chats and a fake one for speech.

The fake one hears the same words in every WAV file, and reads other files as texts.
"""

import io
import math
import wave
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import FilePayload

from ouzel.api.endpoint.speech_services import SpeechServices
from ouzel.config import LimitsConfig
from tests.api.server_setup import ServerSetup
from tests.api.serving import RunningServer, running_server
from tests.api.speech.listening import Repeater, WrittenDecoder, WrittenSound

CHATTING, LISTENING = "org/parrot", "org/listener"
RATE = 16_000
MAX_FILE_BYTES = 2**20
NO_LIMITS = LimitsConfig()
LISTENER = ServerSetup(
    names=(LISTENING,),
    engine_factory="tests.api.speech.listening:create_listener",
    has_chat_template=False,
)


@dataclass(frozen=True)
class HearingServer:
    """A running server with its fake decoder."""

    server: RunningServer
    decoder: "WaveDecoder"


class WaveDecoder(WrittenDecoder):
    """Collects WAV files, and reads other files as texts."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[bytes] = []

    async def decode(self, data: bytes) -> WrittenSound:
        if not data.startswith(b"RIFF"):
            return await super().decode(data)
        self.files.append(data)
        return WrittenSound(["heard", "a", "sound"])


@contextmanager
def hearing_server(
    *, store_url: str | None = None, limits: LimitsConfig = NO_LIMITS
) -> Iterator[HearingServer]:
    decoder = WaveDecoder()
    speech = SpeechServices(decoder, Repeater().make, MAX_FILE_BYTES)
    with running_server(
        {"max_model_len": 4096},
        limits=limits,
        names=(CHATTING,),
        speech=speech,
        store_url=store_url,
        further=(LISTENER,),
    ) as server:
        yield HearingServer(server, decoder)


def make_tone(duration_s: float = 0.5) -> bytes:
    """Returns a WAV file of a tone."""
    steps = range(round(duration_s * RATE))
    samples = array("h", (round(8000 * math.sin(step / 6)) for step in steps))
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(RATE)
        writer.writeframes(samples.tobytes())
    return file.getvalue()


def sound(name: str = "talk.wav") -> FilePayload:
    return FilePayload(name=name, mimeType="audio/wav", buffer=make_tone())
