"""Transcribes sound files with one of the peers, greedily and in English.

usage: PYTHON -m benchmarks.speech.peers NAME MODEL [PRECISION] [WORKERS] [THREADS]

`open_peer` starts this program in an interpreter that has the peer.
"""

import sys
import wave
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any  # the peers are absent where types are checked

import numpy as np
from numpy.typing import NDArray

from benchmarks.speech.task import Heard, SpokenWord, Task, Transcribe, work

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def load_faster_whisper(model: str, precision: str, workers: int, threads: int) -> Transcribe:
    from faster_whisper import BatchedInferencePipeline, WhisperModel

    loaded = WhisperModel(
        model, device="cpu", compute_type=precision, cpu_threads=threads, num_workers=workers
    )
    batched = BatchedInferencePipeline(loaded)

    def transcribe_file(file: str, task: Task) -> Heard:
        options: dict[str, Any] = {  # values of many types
            "language": "en",
            "beam_size": 1,
            "best_of": 1,
            "temperature": TEMPERATURES if task.falls_back else 0.0,
            "without_timestamps": not task.has_timestamps,
            "word_timestamps": task.has_words,
        }
        if not task.falls_back:
            options |= {"log_prob_threshold": None, "no_speech_threshold": None}
            options |= {"compression_ratio_threshold": None}
        if task.num_chunks:
            segments, _ = batched.transcribe(file, batch_size=task.num_chunks, **options)
        else:
            segments, _ = loaded.transcribe(file, **options)
        found = list(segments)
        words = [word for segment in found for word in segment.words or ()]
        return Heard(
            " ".join(segment.text.strip() for segment in found),
            tuple(SpokenWord(word.word, float(word.start), float(word.end)) for word in words),
        )

    def transcribe(task: Task) -> Sequence[Heard]:
        if not task.at_once:
            return [transcribe_file(file, task) for file in task.files]
        with ThreadPoolExecutor(len(task.files)) as pool:
            return list(pool.map(lambda file: transcribe_file(file, task), task.files))

    return transcribe


def load_whisper_cpp(model: str, _precision: str, _workers: int, threads: int) -> Transcribe:
    from pywhispercpp.model import Model

    loaded = Model(
        model,
        n_threads=threads,
        print_progress=False,
        print_realtime=False,
        redirect_whispercpp_logs_to=None,
    )

    def transcribe(task: Task) -> Sequence[Heard]:
        options = {"temperature_inc": 0.2 if task.falls_back else 0.0}
        options |= {"no_timestamps": not task.has_timestamps}
        return [
            Heard(" ".join(each.text.strip() for each in loaded.transcribe(file, **options)))
            for file in task.files
        ]

    return transcribe


def load_transformers(model: str, _precision: str, _workers: int, threads: int) -> Transcribe:
    import torch
    from transformers import AutoProcessor, WhisperForConditionalGeneration
    from transformers import pipeline as make_pipeline

    torch.set_num_threads(threads)
    processor = AutoProcessor.from_pretrained(model)
    loaded = WhisperForConditionalGeneration.from_pretrained(model, dtype=torch.float32).eval()
    pipeline = make_pipeline(
        "automatic-speech-recognition",
        model=loaded,
        tokenizer=processor.tokenizer,
        feature_extractor=processor.feature_extractor,
    )

    def transcribe_file(file: str, task: Task) -> Heard:
        samples = read_samples(file)
        if task.has_words:
            found = pipeline(samples, return_timestamps="word")
            words = [
                SpokenWord(chunk["text"], *(float(time or 0.0) for time in chunk["timestamp"]))
                for chunk in found["chunks"]
            ]
            return Heard(found["text"].strip(), tuple(words))
        features = processor(samples, sampling_rate=16_000, return_tensors="pt").input_features
        with torch.inference_mode():
            ids = loaded.generate(
                features, num_beams=1, do_sample=False, return_timestamps=task.has_timestamps
            )
        return Heard(processor.batch_decode(ids, skip_special_tokens=True)[0].strip())

    return lambda task: [transcribe_file(file, task) for file in task.files]


def load_openai_whisper(model: str, _precision: str, _workers: int, threads: int) -> Transcribe:
    import torch
    import whisper

    from benchmarks.speech.openai_checkpoint import load_checkpoint

    torch.set_num_threads(threads)
    loaded = load_checkpoint(Path(model))

    def transcribe_file(file: str, task: Task) -> Heard:
        found = whisper.transcribe(
            loaded,
            read_samples(file),
            language="en",
            fp16=False,
            temperature=TEMPERATURES if task.falls_back else 0.0,
            word_timestamps=task.has_words,
            without_timestamps=not task.has_timestamps,
        )
        words = [word for each in found["segments"] for word in each.get("words", ())]
        return Heard(
            found["text"].strip(),
            tuple(SpokenWord(each["word"], each["start"], each["end"]) for each in words),
        )

    return lambda task: [transcribe_file(file, task) for file in task.files]


def read_samples(file: str) -> NDArray[np.float32]:
    with wave.open(file) as sound:
        assert (sound.getframerate(), sound.getnchannels()) == (16_000, 1), file
        content = sound.readframes(sound.getnframes())
    return np.frombuffer(content, "<i2").astype(np.float32) / np.float32(32768)


LOADERS: dict[str, Callable[[str, str, int, int], Transcribe]] = {
    "faster-whisper": load_faster_whisper,
    "whisper.cpp": load_whisper_cpp,
    "transformers": load_transformers,
    "openai-whisper": load_openai_whisper,
}


def main() -> None:
    name, model, precision, workers, threads = sys.argv[1:]
    work(lambda: LOADERS[name](model, precision, int(workers), int(threads)))


if __name__ == "__main__":
    main()
