"""Runs a Speaker on the real engine with a tiny model, whose samples tell the tokens it read.

The phonemes of a text are its own letters: the vocabulary of Kokoro has most small letters.
"""

import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.pooling_engine import PoolingEngine
from ouzel.engine_client import EngineClient, EngineSpec
from ouzel.errors import InvalidRequest
from ouzel.model_store.model_directory import find_or_download
from ouzel.observability import Metrics
from ouzel.serve.engine_factories import openvino_engine
from ouzel.speaking import Speaker, SpeechOptions, SpokenPart
from ouzel.speaking.phonemizer import Phonemizer
from ouzel.speaking.speaker import MakePhonemizer
from ouzel.tokenizer.huggingface import load_tokenizer
from ouzel.types.engine_request import EngineRequest
from ouzel.types.step_output import StepOutput
from ouzel.worker_threads import WorkerThreads
from tests.generation.generations import make_model
from tests.kokoro_files.tiny_models import write_onnx_form

accepted: list[EngineRequest] = []  # requests in the order in which the engine got them
spoken: list[str] = []  # ids of requests in the order in which they ended
may_step = threading.Event()  # while it is not set, the engine does not step
may_step.set()


class _Letters:
    def to_phonemes(self, text: str) -> str:
        return text.lower()


def make_letters(language: str) -> Phonemizer:
    if language not in ("en-us", "en-gb", "es"):
        raise InvalidRequest(f"must be en-us, en-gb or es, given {language}", field="language")
    return _Letters()


class _WatchedEngine(PoolingEngine):
    """Records its requests, and waits where the test holds it."""

    def add(self, request: EngineRequest) -> None:
        accepted.append(request)
        super().add(request)

    def step(self) -> list[StepOutput]:
        may_step.wait()
        outputs = super().step()
        spoken.extend(output.request_id for output in outputs)
        return outputs


def create_engine(options: dict[str, object]) -> PoolingEngine:
    """Makes the engine as the server does; it needs `in_thread=True`."""
    engine = openvino_engine(options)
    assert isinstance(engine, PoolingEngine)
    return _WatchedEngine(engine._runner)


@dataclass(frozen=True)
class Running:
    speaker: Speaker
    engine: EngineClient
    metrics: Metrics

    async def speak(
        self, text: str, voice: str = "af_bella", **options: object
    ) -> list[SpokenPart]:
        chosen = SpeechOptions(text, voice, **options)  # type: ignore[arg-type]
        return [part async for part in self.open(chosen)]

    def open(
        self, options: SpeechOptions, request_id: str = "r"
    ) -> AsyncGenerator[SpokenPart, None]:
        return self.speaker.speak(options, request_id=request_id, key_id=None, arrival_s=0.0)


@asynccontextmanager
async def run_speaker(
    tmp_path: Path, make_phonemizer: MakePhonemizer = make_letters
) -> AsyncIterator[Running]:
    accepted.clear()
    model = ModelConfig(
        model=str(write_onnx_form(tmp_path / "tiny")), cache_dir=str(tmp_path / "cache")
    )
    local = find_or_download(model)
    spec = EngineSpec(
        factory=f"{__name__}:create_engine",
        options={
            "model": msgspec.to_builtins(local.put_paths_into(model)),
            "engine": msgspec.to_builtins(EngineConfig(num_threads=1)),
        },
    )
    engine = EngineClient(spec, in_thread=True)
    await engine.start()
    threads = WorkerThreads("phonemes", 2)
    metrics = Metrics("tiny")
    try:
        tokenizer = load_tokenizer(local.directory)
        served = replace(make_model(engine), tokenizer=tokenizer)
        yield Running(Speaker(served, metrics, threads, make_phonemizer), engine, metrics)
    finally:
        may_step.set()
        threads.close()
        await engine.close()
