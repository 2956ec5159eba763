"""Starts a server whose speaker hums: each sentence of a text is a tone.

A sentence ends at a full stop. Its words say how it sounds: `a`, `b` and `c` are tones of a quarter
of a second, `silent` makes no sample, `fail` raises an error, and `wait` waits until the test lets
it go on.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import numpy as np

from ouzel.api.endpoint.speech_services import SpeechServices
from ouzel.backends.fake import FakeEngine, FakeOptions, echo
from ouzel.errors import EngineFailed, InvalidRequest
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.speaking.options import SpeechOptions
from ouzel.speaking.spoken_part import SpokenPart
from ouzel.types.engine_info import EngineInfo, VoiceShape
from tests.api.serving import RunningServer, running_server
from tests.api.speech.listening import MAX_FILE_BYTES, Repeater, WrittenDecoder
from tests.audio.signals import make_tone

MODEL = "org/hummer"
RATE = 24_000
WORD_S = 0.25
TONES = {"a": 440.0, "b": 880.0, "c": 1320.0}
VOICES = ("af_bella", "am_adam", "bf_emma")
_KNOWN = {*VOICES, "alloy", "af_bella(2)+am_adam(1)"}
_LANGUAGES = (None, "en-us", "en-gb", "fr", "b")
MAX_CHARACTERS = 200


class HummingEngine(FakeEngine):
    """An engine of a voice model. The hummer does not use it."""

    @property
    def info(self) -> EngineInfo:
        shape = VoiceShape(sample_rate=RATE, voices=VOICES)
        return msgspec.structs.replace(super().info, task="speak", speech=shape)


def create_hummer(options: dict[str, object]) -> HummingEngine:
    return HummingEngine(msgspec.convert(options, FakeOptions), echo)


class Hummer:
    """A speaker that hums, and records its calls."""

    def __init__(self) -> None:
        self.options: list[SpeechOptions] = []
        self.calls: list[tuple[str, str | None]] = []  # request id and key id
        self.may_go_on = threading.Event()
        self.num_waiting = self.num_aborted = self.num_running = self.most_running = 0
        self.num_blocking = 0  # checks on the event loop

    def make(self, model: ServedModel, metrics: Metrics) -> "Hummer":
        return self

    @property
    def sample_rate(self) -> int:
        return RATE

    def check(self, options: SpeechOptions) -> None:
        with suppress(RuntimeError):  # no event loop runs in this thread
            asyncio.get_running_loop()
            self.num_blocking += 1
        if options.voice not in _KNOWN:
            raise InvalidRequest(f"must be a voice, given {options.voice!r}", field="voice")
        if options.language not in _LANGUAGES:
            raise InvalidRequest(f"must be known, given {options.language!r}", field="language")
        if not options.text.strip():
            raise InvalidRequest("must have a word", field="input")

    async def speak(
        self, options: SpeechOptions, *, request_id: str, key_id: str | None, arrival_s: float
    ) -> AsyncGenerator[SpokenPart, None]:
        self.options.append(options)
        self.calls.append((request_id, key_id))
        self.num_running += 1
        self.most_running = max(self.most_running, self.num_running)
        try:
            for sentence in options.text.split("."):
                words = sentence.split()
                if words:
                    yield await self._hum(words, options.speed)
        except (GeneratorExit, asyncio.CancelledError):
            self.num_aborted += 1
            raise
        finally:
            self.num_running -= 1

    async def _hum(self, words: list[str], speed: float) -> SpokenPart:
        if "fail" in words:
            raise EngineFailed("the engine lost this request")
        if "wait" in words:
            self.num_waiting += 1
            while not self.may_go_on.is_set():
                await asyncio.sleep(0.005)
        await asyncio.sleep(0)
        tones = [make_tone(TONES[word], WORD_S / speed, RATE) for word in words if word in TONES]
        samples = np.concatenate([np.empty(0, np.float32), *tones])
        return SpokenPart(samples, num_tokens=len(words))


class HummingServer:
    """A running server with its speaker."""

    def __init__(self, server: RunningServer, hummer: Hummer) -> None:
        self.server = server
        self.url = server.url
        self.hummer = hummer


@contextmanager
def humming_server(**setup: Any) -> Iterator[HummingServer]:  # the fields of ServerSetup
    hummer = Hummer()
    speech = SpeechServices(
        WrittenDecoder(),
        Repeater().make,
        MAX_FILE_BYTES,
        make_speaker=hummer.make,
        max_text_characters=MAX_CHARACTERS,
    )
    factory = "tests.api.speaking.humming:create_hummer"
    defaults = {"names": (MODEL,), "engine_factory": factory, "has_chat_template": False}
    with running_server(**{**defaults, **setup}, speech=speech) as server:
        yield HummingServer(server, hummer)
