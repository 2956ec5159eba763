"""Scripts the transcripts of a fake speech model, and runs transcriptions on it.

The features of a window tell where it begins and where its sound ends, so the engine finds the
script of the window.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import log

import msgspec
import numpy as np
from numpy.typing import NDArray

from ouzel.audio.sound import SampledSound
from ouzel.backends.fake import FakeEngine, FakeOptions
from ouzel.checkpoint.speech_tokens import SpeechTokens
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.observability import Metrics
from ouzel.transcription import (
    Segment,
    SegmentDone,
    TextDelta,
    Transcriber,
    Transcription,
    TranscriptionEvent,
    TranscriptionOptions,
)
from ouzel.transcription.windows import FRAME_SAMPLES, FRAMES_PER_S, SAMPLE_RATE
from ouzel.types.engine_info import AudioShape, EngineInfo
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import PositionLogprobs, StepOutput, TokenLogprob
from ouzel.worker_threads import WorkerThreads
from tests.generation.generations import make_model

END, START, EN, DE, JA = 300, 301, 302, 303, 304
TRANSCRIBE, TRANSLATE, PREVIOUS, NO_SPEECH, NO_TIMESTAMPS = 310, 311, 312, 313, 314
FIRST_TIMESTAMP = 315
MAX_MODEL_LEN = 448

TOKENS = SpeechTokens(
    start=START,
    end=END,
    no_timestamps=NO_TIMESTAMPS,
    first_timestamp=FIRST_TIMESTAMP,
    previous=PREVIOUS,
    no_speech=NO_SPEECH,
    is_multilingual=True,
    languages={"en": EN, "de": DE, "ja": JA},
    tasks={"transcribe": TRANSCRIBE, "translate": TRANSLATE},
    suppressed=(7,),
    suppressed_first=(32,),
)
ENGLISH_TOKENS = SpeechTokens(
    start=START,
    end=END,
    no_timestamps=NO_TIMESTAMPS,
    first_timestamp=FIRST_TIMESTAMP,
    previous=PREVIOUS,
    no_speech=NO_SPEECH,
    is_multilingual=False,
)


def say(*parts: str | float) -> list[int]:
    """Returns the tokens of a transcript: texts are bytes, numbers are timestamps in seconds."""
    token_ids: list[int] = []
    for part in parts:
        if isinstance(part, str):
            token_ids += part.encode()
        else:
            token_ids.append(FIRST_TIMESTAMP + round(part * 50))
    return token_ids


@dataclass(frozen=True)
class Attempt:
    """The transcript of a window in one decoding; each of its tokens has the same logprob."""

    token_ids: Sequence[int]
    logprob: float = -0.1


@dataclass
class Script:
    """The answers of the engine; it records all requests."""

    # attempts of a window by its first frame; the last is repeated
    windows: Mapping[int, Sequence[Attempt]] = field(default_factory=dict)
    no_speech_probs: Mapping[int, float] = field(default_factory=dict)
    language: int = EN
    align: Callable[[EngineRequest], NDArray[np.float32]] | None = None
    requests: list[EngineRequest] = field(default_factory=list)
    options: FakeOptions = field(default_factory=FakeOptions)

    def decodings(self) -> list[EngineRequest]:
        return [each for each in self.requests if each.transcript_rules is not None]

    def guesses(self) -> list[EngineRequest]:
        return [each for each in self.requests if each.params.max_tokens == 1]


def find_begin(request: EngineRequest) -> int:
    """Returns the first frame of the window of a request."""
    assert request.audio is not None
    return int(np.frombuffer(request.audio.features, "<f4")[0])


def find_end(request: EngineRequest) -> int:
    """Returns the end of the sound that the window sees, in frames."""
    assert request.audio is not None
    return int(np.frombuffer(request.audio.features, "<f4")[1])


_scripts: list[Script] = []


def create_engine(options: dict[str, object]) -> FakeEngine:
    """Makes the engine of a script; it needs `in_thread=True`."""
    number = options["script"]
    assert isinstance(number, int)
    return _SpeechEngine(_scripts[number])


class _SpeechEngine(FakeEngine):
    def __init__(self, script: Script) -> None:
        super().__init__(
            msgspec.structs.replace(script.options, max_model_len=MAX_MODEL_LEN), self._choose
        )
        self._speech = script
        self._accepted: dict[str, EngineRequest] = {}

    @property
    def info(self) -> EngineInfo:
        shape = AudioShape(num_mel_bins=1, num_frames=3000, num_encoder_frames=1500, can_align=True)
        return msgspec.structs.replace(super().info, audio=shape, task="generate")

    def add(self, request: EngineRequest) -> None:
        self._accepted[request.request_id] = request
        self._speech.requests.append(request)
        super().add(request)

    def step(self) -> list[StepOutput]:
        return [self._complete(output) for output in super().step()]

    def _attempt(self, request: EngineRequest) -> Attempt:
        attempts = self._speech.windows[find_begin(request)]
        return attempts[min(round(request.params.temperature / 0.2), len(attempts) - 1)]

    def _choose(self, request: EngineRequest, position: int) -> int:
        if request.params.max_tokens == 1:
            return self._speech.language
        token_ids = [*self._attempt(request).token_ids, END]
        return token_ids[min(position, len(token_ids) - 1)]

    def _complete(self, output: StepOutput) -> StepOutput:
        request = self._accepted[output.request_id]
        if request.num_aligned_frames and self._speech.align is not None:
            vector = self._speech.align(request).astype("<f4").tobytes()
            return msgspec.structs.replace(output, vector=vector)
        if request.params.max_tokens == 1:
            probability = self._speech.no_speech_probs.get(find_begin(request), 0.01)
            top = (TokenLogprob(NO_SPEECH, log(probability)),)
            logprobs = [PositionLogprobs(each.sampled, top) for each in output.logprobs]
        elif request.transcript_rules is not None:
            logprob = self._attempt(request).logprob
            logprobs = [
                PositionLogprobs(TokenLogprob(each, logprob), ()) for each in output.token_ids
            ]
        else:
            logprobs = output.logprobs
        return msgspec.structs.replace(output, logprobs=logprobs)


class MarkedFeatures:
    """Implements `Features`: the values are the first frame of a window and the sound's end."""

    def find_peak(self, sound: SampledSound) -> float:
        return 0.0

    def window(self, sound: SampledSound, begin_sample: int, peak: float) -> NDArray[np.float32]:
        return np.array(
            [[begin_sample // FRAME_SAMPLES, sound.num_samples // FRAME_SAMPLES]], np.float32
        )


@dataclass(frozen=True)
class Samples:
    """Implements `SampledSound` in memory."""

    values: NDArray[np.float32]

    @property
    def num_samples(self) -> int:
        return len(self.values)

    def samples(self, begin: int, end: int) -> NDArray[np.float32]:
        return self.values[max(begin, 0) : max(end, 0)]


def make_sound(duration_s: float) -> Samples:
    return Samples(np.zeros(round(duration_s * SAMPLE_RATE), np.float32))


def make_speech(*parts: tuple[str, float]) -> Samples:
    """Makes a sound of tones and pauses: pairs of `tone` or `pause` and seconds."""
    pieces = []
    for kind, duration_s in parts:
        times = np.arange(round(duration_s * SAMPLE_RATE)) / SAMPLE_RATE
        level = 0.3 if kind == "tone" else 0.0005
        pieces.append(level * np.sin(2 * np.pi * 200 * times))
    return Samples(np.concatenate(pieces).astype(np.float32))


@asynccontextmanager
async def open_engine(script: Script) -> AsyncIterator[EngineClient]:
    _scripts.append(script)
    spec = EngineSpec(
        factory="tests.transcription.speech:create_engine", options={"script": len(_scripts) - 1}
    )
    client = EngineClient(spec, in_thread=True)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def run_transcription(
    script: Script,
    sound: SampledSound,
    options: TranscriptionOptions | None = None,
    tokens: SpeechTokens = TOKENS,
) -> list[TranscriptionEvent]:
    async with open_engine(script) as engine:
        transcriber = make_transcriber(engine, tokens)
        stream = transcriber.transcribe(
            sound,
            options or TranscriptionOptions(language="en"),
            request_id="r",
            key_id="key",
            arrival_s=0.0,
        )
        return [event async for event in stream]


def make_transcriber(engine: EngineClient, tokens: SpeechTokens = TOKENS) -> Transcriber:
    threads = WorkerThreads("sounds", 1)
    return Transcriber(make_model(engine), Metrics("whisper"), tokens, MarkedFeatures(), threads)


async def transcribe(
    script: Script,
    sound: SampledSound,
    options: TranscriptionOptions | None = None,
    tokens: SpeechTokens = TOKENS,
) -> Transcription:
    """Returns the result, after the rules for all streams of events were checked."""
    events = await run_transcription(script, sound, options, tokens)
    result = events[-1]
    assert isinstance(result, Transcription)
    assert list_segments(events) == list(result.segments)
    assert "".join(list_deltas(events)) == result.text
    return result


def list_deltas(events: Sequence[TranscriptionEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, TextDelta)]


def list_segments(events: Sequence[TranscriptionEvent]) -> list[Segment]:
    return [event.segment for event in events if isinstance(event, SegmentDone)]


def list_times(result: Transcription) -> list[tuple[float, float, str]]:
    """Returns start, end and text of each segment."""
    return [(round(each.start_s, 3), round(each.end_s, 3), each.text) for each in result.segments]


def to_frames(time_s: float) -> int:
    return round(time_s * FRAMES_PER_S)
