"""Starts a server whose fake transcriber repeats the words of a "sound file", which is a text.

Every two words are a segment of two seconds. The word `fail` raises an error, and `wait` waits
for ever.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.api.endpoint.speech_services import SpeechServices
from ouzel.backends.fake import FakeEngine, FakeOptions, echo
from ouzel.errors import EngineFailed, InvalidRequest
from ouzel.generation import ServedModel
from ouzel.observability import Metrics
from ouzel.transcription.events import (
    Segment,
    SegmentDone,
    TextDelta,
    Transcription,
    TranscriptionEvent,
    TranscriptionUsage,
    Word,
)
from ouzel.transcription.live.speech_probability import LiveEnergyDetector, LiveVoiceActivity
from ouzel.transcription.options import TranscriptionOptions
from ouzel.types.engine_info import AudioShape, EngineInfo
from ouzel.types.step_output import PositionLogprobs, TokenLogprob
from tests.api.serving import RunningServer, running_server

MODEL = "org/listener"
MAX_FILE_BYTES = 1 << 18
SEGMENT_S = 2.0


class Listener(FakeEngine):
    """An engine of a speech model. The fake transcriber does not use it."""

    can_align = True

    @property
    def info(self) -> EngineInfo:
        audio = AudioShape(
            num_mel_bins=80, num_frames=3000, num_encoder_frames=1500, can_align=self.can_align
        )
        return msgspec.structs.replace(super().info, task="transcribe", audio=audio)


class ListenerWithoutHeads(Listener):
    can_align = False


def create_listener(options: dict[str, object]) -> Listener:
    return Listener(msgspec.convert(options, FakeOptions), echo)


def create_listener_without_heads(options: dict[str, object]) -> ListenerWithoutHeads:
    return ListenerWithoutHeads(msgspec.convert(options, FakeOptions), echo)


class WrittenSound:
    """A sound whose words can be read."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.is_closed = False

    @property
    def duration_s(self) -> float:
        return len(self.words) * SEGMENT_S / 2

    @property
    def num_samples(self) -> int:
        return round(self.duration_s * 16_000)

    def samples(self, begin: int, end: int) -> NDArray[np.float32]:
        raise NotImplementedError("the fake transcriber reads words")

    def close(self) -> None:
        self.is_closed = True


class WrittenDecoder:
    """A decoder of texts. A text that begins with `stall` is never decoded."""

    def __init__(self) -> None:
        self.sounds: list[WrittenSound] = []
        self.num_waiting = 0
        self.num_aborted = 0

    async def decode(self, data: bytes) -> WrittenSound:
        words = data.decode().split()
        if not words:
            raise InvalidRequest("must have at least one sample of sound", field="file")
        if words[0] == "stall":
            self.num_waiting += 1
            try:
                await asyncio.Event().wait()
            finally:
                self.num_aborted += 1
        self.sounds.append(WrittenSound(words))
        return self.sounds[-1]


class Repeater:
    """A transcriber that repeats the words of a sound, and records its calls."""

    def __init__(self) -> None:
        self.options: list[TranscriptionOptions] = []
        self.calls: list[tuple[str, str | None]] = []  # request id and key id
        self.num_waiting = 0
        self.num_aborted = 0

    def make(self, model: ServedModel, metrics: Metrics) -> "Repeater":
        return self

    async def transcribe(
        self,
        sound: Any,  # WrittenSound; the protocol has a decoded sound without words
        options: TranscriptionOptions,
        *,
        request_id: str,
        key_id: str | None,
        arrival_s: float,
    ) -> AsyncGenerator[TranscriptionEvent, None]:
        self.options.append(options)
        self.calls.append((request_id, key_id))
        words = sound.words
        segments: list[Segment] = []
        logprobs: list[PositionLogprobs] = []
        try:
            for begin in range(0, len(words), 2):
                pair = words[begin : begin + 2]
                await self._obey(pair)
                positions = _make_logprobs(pair, options)
                logprobs += positions
                for number, word in enumerate(pair):
                    yield TextDelta(text=f" {word}", logprobs=positions[number : number + 1])
                segments.append(_make_segment(len(segments), pair, options))
                yield SegmentDone(segment=segments[-1])
        except GeneratorExit:
            self.num_aborted += 1
            raise
        except asyncio.CancelledError:
            self.num_aborted += 1
            raise
        yield Transcription(
            text="".join(segment.text for segment in segments),
            language=options.language or "de",
            duration_s=sound.duration_s,
            segments=tuple(segments),
            usage=TranscriptionUsage(
                input_tokens=1503,
                audio_tokens=1500,
                text_tokens=3,
                output_tokens=len(words),
                duration_s=sound.duration_s,
            ),
            logprobs=tuple(logprobs),
        )

    async def _obey(self, words: Sequence[str]) -> None:
        if "fail" in words:
            raise EngineFailed("the engine lost this request")
        if "wait" in words:
            self.num_waiting += 1
            await asyncio.Event().wait()


def _make_logprobs(
    words: Sequence[str], options: TranscriptionOptions
) -> tuple[PositionLogprobs, ...]:
    if options.num_logprobs is None:
        return ()
    return tuple(
        PositionLogprobs(sampled=TokenLogprob(token_id=ord(word[0]), logprob=-0.5), top=())
        for word in words
    )


def _make_segment(number: int, words: Sequence[str], options: TranscriptionOptions) -> Segment:
    begin_s = number * SEGMENT_S
    timed = tuple(
        Word(text=f" {word}", start_s=begin_s + at, end_s=begin_s + at + 0.9, probability=0.9)
        for at, word in enumerate(words)
    )
    return Segment(
        id=number,
        seek=0,
        start_s=begin_s,
        end_s=begin_s + SEGMENT_S,
        text="".join(f" {word}" for word in words),
        token_ids=tuple(ord(word[0]) for word in words),
        temperature=options.temperature,
        avg_logprob=-0.5,
        compression_ratio=1.25,
        no_speech_prob=0.125,
        words=timed if options.has_words else (),
    )


class ListeningServer:
    """A running server with its fake decoder and transcriber."""

    def __init__(self, server: RunningServer, decoder: WrittenDecoder, repeater: Repeater) -> None:
        self.server = server
        self.url = server.url
        self.decoder = decoder
        self.repeater = repeater


@contextmanager
def listening_server(
    engine_factory: str = "create_listener",
    repeater: Repeater | None = None,
    make_activity: Callable[[], LiveVoiceActivity] = LiveEnergyDetector,
    **setup: Any,  # the fields of ServerSetup
) -> Iterator[ListeningServer]:
    decoder, repeater = WrittenDecoder(), repeater or Repeater()
    speech = SpeechServices(decoder, repeater.make, MAX_FILE_BYTES, make_activity=make_activity)
    with running_server(
        **{"names": (MODEL,), **setup},
        engine_factory=f"tests.api.speech.listening:{engine_factory}",
        has_chat_template=False,
        speech=speech,
    ) as server:
        yield ListeningServer(server, decoder, repeater)
