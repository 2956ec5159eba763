"""Reads the random Whisper checkpoints of training/golden/make_speech.py and runs them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino import create_runner
from ouzel.backends.openvino.runners.runner import OpenVINORunner
from ouzel.config import EngineConfig, ModelConfig
from ouzel.engine.base import ForwardBatch
from ouzel.types.engine_request import AudioInput

SPEECH = Path(__file__).parent / "golden_speech"
NAMES = ["whisper", "whisper-128-bins"]
NUM_FRAMES = 3000
ROW_STEP = 50  # between the stored rows of the encoder's output
ALIGNMENT_HEADS = ((0, 1), (1, 0))
EXACT = EngineConfig(precision="f32", kv_cache_dtype="f32", num_threads=1)

Array = NDArray[np.float32]


@dataclass(frozen=True)
class SpeechGolden:
    directory: Path
    mel_seed: int
    encoded: Array  # every 50th row of the encoder's output
    tokens: list[int]
    logits: Array  # [tokens, vocabulary]
    attention: Array  # [alignment heads, tokens, encoder frames]: softmax over the frames

    @property
    def num_bins(self) -> int:
        return 128 if self.directory.name.endswith("128-bins") else 80

    def audio(self, seed: int | None = None) -> AudioInput:
        """Returns the golden window, or with a seed another one."""
        return make_audio(self.num_bins, self.mel_seed if seed is None else seed)


def read_speech_golden(name: str) -> SpeechGolden:
    with np.load(SPEECH / name / "golden.npz") as arrays:
        return SpeechGolden(
            SPEECH / name,
            int(arrays["mel_seed"]),
            arrays["encoded"],
            arrays["tokens"].tolist(),
            arrays["logits"],
            arrays["alignment"].astype(np.float32),
        )


def make_audio(num_bins: int, seed: int) -> AudioInput:
    numbers = np.random.default_rng(seed).random((num_bins, NUM_FRAMES))
    mel = (numbers * 2.5 - 1).astype(np.float32)
    return AudioInput(
        digest=seed.to_bytes(16, "big"), shape=(num_bins, NUM_FRAMES), features=mel.tobytes()
    )


def load_speech(
    golden: SpeechGolden, cache_dir: Path, engine: EngineConfig = EXACT, weights: str = "f32"
) -> OpenVINORunner:
    model = ModelConfig(model=str(golden.directory), weights=weights, cache_dir=str(cache_dir))
    runner = create_runner(model, engine, num_blocks=16)
    assert isinstance(runner, OpenVINORunner)
    return runner


def fill_slot(runner: OpenVINORunner, audio: AudioInput, slot: int) -> None:
    for _ in runner.encode_audio(audio, slot):
        pass


def compute_logits(
    runner: OpenVINORunner, work: list[tuple[int, list[int], int, int]]
) -> list[Array]:
    """Returns the logits of new tokens; `work` has for each sequence its first block, all of its
    tokens, how many of them are in the cache, and the slot of its sound.
    """
    lens = [len(tokens) - num_cached for _, tokens, num_cached, _ in work]
    begins = np.cumsum([0, *lens]).astype(np.int32)
    num_blocks = [-(-len(tokens) // runner.info.block_size) for _, tokens, _, _ in work]
    blocks = [range(first, first + num) for (first, *_), num in zip(work, num_blocks, strict=True)]
    logits = runner.run(
        ForwardBatch(
            token_ids=np.concatenate([each[1][each[2] :] for each in work]).astype(np.int64),
            positions=np.concatenate(
                [np.arange(num_cached, len(tokens)) for _, tokens, num_cached, _ in work]
            ).astype(np.int64),
            past_lens=np.array([num_cached for _, _, num_cached, _ in work], np.int32),
            subsequence_begins=begins,
            block_indices=np.concatenate(blocks).astype(np.int32),
            block_indices_begins=np.cumsum([0, *num_blocks]).astype(np.int32),
            max_context_len=max(len(tokens) for _, tokens, _, _ in work),
            sampled_rows=np.arange(begins[-1], dtype=np.int64),
            audio_slots=np.repeat(np.array([slot for *_, slot in work], np.int32), lens),
        )
    )
    return [each.copy() for each in np.split(logits, begins[1:-1])]
