"""Transcribes with Ouzel in this process, with options that HTTP does not have.

    python -m benchmarks.speech.ours MODEL [OPTION OF OUZEL SERVE ...]

Over HTTP the model always writes timestamps, and falls back to higher temperatures.
"""

import asyncio
import sys
import time
from collections.abc import Sequence

from benchmarks.speech.peers import read_samples
from benchmarks.speech.task import Heard, SpokenWord, Task, Transcribe, work
from ouzel.api.endpoint.speech_services import SpeechTranscriber
from ouzel.audio.sound import Sound
from ouzel.observability import Metrics
from ouzel.serve.in_process_app import read_own_model
from ouzel.serve.model_host import ModelHost
from ouzel.serve.open_speech import OpenSpeech, open_voice_detector
from ouzel.transcription.events import Transcription
from ouzel.transcription.options import TranscriptionOptions


def load_ours(arguments: Sequence[str]) -> Transcribe:
    options, checked = read_own_model(arguments, command="serve")
    loop = asyncio.new_event_loop()
    model = loop.run_until_complete(ModelHost(options).serve(checked))
    speech = OpenSpeech(options.audio, open_voice_detector(options.audio))
    transcriber = speech.services.make_transcriber(model, Metrics(model.names[0]))

    def transcribe(task: Task) -> list[Heard]:
        return [
            loop.run_until_complete(_transcribe(transcriber, file, task)) for file in task.files
        ]

    return transcribe


async def _transcribe(transcriber: SpeechTranscriber, file: str, task: Task) -> Heard:
    options = TranscriptionOptions(
        language="en",
        falls_back=task.falls_back,
        has_timestamps=task.has_timestamps,
        has_words=task.has_words,
        chunking="vad" if task.num_chunks else "sequential",
    )
    events = transcriber.transcribe(
        Sound.from_samples(read_samples(file)),
        options,
        request_id=f"benchmark-{time.perf_counter_ns()}",
        key_id=None,
        arrival_s=time.perf_counter(),
    )
    async for event in events:
        if isinstance(event, Transcription):
            words = [word for segment in event.segments for word in segment.words]
            return Heard(
                event.text.strip(),
                tuple(SpokenWord(word.text, word.start_s, word.end_s) for word in words),
            )
    raise AssertionError("the last event is the whole transcription")


if __name__ == "__main__":
    work(lambda: load_ours(sys.argv[1:]))
