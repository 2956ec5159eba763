"""Writes tests/backends/golden_hearing/: tiny random checkpoints that hear sounds. See README.md."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import (
    Qwen2AudioConfig,
    Qwen2AudioForConditionalGeneration,
    WhisperFeatureExtractor,
)

from training.golden.make_golden import SMALLEST_GAP, best_token, random_weights

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_hearing"
SOUND_TOKEN = 7  # of all cases; texts have larger ids
SAMPLE_RATE = 16_000
# samples of the sounds; the tests make the same
SOUND_LENGTHS = (16_480, 8_000, 40_123)
NUM_SOUNDS = (1, 2, 3)
GREEDY_LENGTH = 24
NUM_TRIES = 60
VOCAB_SIZE = 192
TEXT = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
Json = dict[str, Any]  # Any: as transformers has it


@dataclass(frozen=True)
class HearingCase:
    make_model: Callable[[], Any]  # Any: a model of transformers
    extractor: Any
    num_tokens: Callable[[int], int]  # of a sound with so many frames


def make_sound(number: int) -> NDArray[np.float32]:
    """Makes a sound of tones and noise, in 16-bit steps as sound files have them."""
    times = np.arange(SOUND_LENGTHS[number]) / SAMPLE_RATE
    tones = sum(
        np.sin(2 * np.pi * hertz * (number + 1) * times * (1 + times)) for hertz in (150, 410, 990)
    )
    noise = np.random.default_rng(number).standard_normal(len(times))
    samples = np.rint((tones * 0.2 + noise * 0.02) * 2**15).clip(-(2**15), 2**15 - 1)
    return (samples / 2**15).astype(np.float32)


def make_qwen2_audio() -> Any:
    config = Qwen2AudioConfig(
        audio_config={
            "num_mel_bins": 128,
            "encoder_layers": 5,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 48,
            "d_model": 32,
        },
        text_config={"model_type": "qwen2", **TEXT},
        audio_token_index=SOUND_TOKEN,
    )
    return Qwen2AudioForConditionalGeneration._from_config(config, attn_implementation="eager")


CASES = {
    "qwen2_audio": HearingCase(
        make_qwen2_audio,
        WhisperFeatureExtractor(feature_size=128),
        num_tokens=lambda num_frames: (((num_frames - 1) // 2 + 1) - 2) // 2 + 1,
    )
}


def fill(model: Any, seed: int) -> None:
    """Gives the model random weights of f16; positions of the encoder stay sinusoids."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                values = random_weights(name, parameter.shape, generator)
                if parameter.dim() == 3:  # a convolution: its inputs are channels and taps
                    values *= (parameter.shape[1] ** -0.5) / 1.5
                parameter.copy_(values)
            parameter.copy_(parameter.half().float())
        # so that no answer has a sound
        model.get_output_embeddings().weight[: SOUND_TOKEN + 1] = 0


def make_prompt(counts: list[int], seed: int) -> list[int]:
    """Makes text before, between and after sounds of so many tokens."""
    generator = np.random.default_rng(seed + len(counts))

    def text(length: int) -> list[int]:
        return [int(each) for each in generator.integers(SOUND_TOKEN + 1, VOCAB_SIZE, length)]

    token_ids = text(9)
    for number, count in enumerate(counts):
        token_ids += [SOUND_TOKEN] * count + text(3 + number)
    return token_ids


class Embedded:
    """Notes what enters the language model in place of tokens."""

    def __init__(self, model: Any) -> None:
        self.rows: Any = None
        model.model.language_model.register_forward_pre_hook(self.note, with_kwargs=True)

    def note(self, module: Any, arguments: Any, named: Json) -> None:
        self.rows = named["inputs_embeds"][0]


def compute_outputs(
    case: HearingCase, model: Any, embedded: Embedded, count: int, seed: int
) -> Json | None:
    """Returns None where the best logit and the second are too near to each other."""
    sounds = [make_sound(number) for number in range(count)]
    made = case.extractor(
        sounds,
        sampling_rate=SAMPLE_RATE,
        return_tensors="pt",
        return_attention_mask=True,
        padding="max_length",
    )
    mask = made["attention_mask"]
    counts = [case.num_tokens(int(each)) for each in mask.sum(-1)]
    prompt = make_prompt(counts, seed)

    def compute_logits(ids: list[int]) -> Any:
        return model(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            input_features=made["input_features"],
            feature_attention_mask=mask,
            use_cache=False,
        ).logits[0]

    greedy: list[int] = []
    with torch.no_grad():
        logits = prompt_logits = compute_logits(prompt)
        rows = embedded.rows[[at for at, each in enumerate(prompt) if each == SOUND_TOKEN]]
        for _ in range(GREEDY_LENGTH):
            token_id, gap = best_token(logits[-1])
            if gap < SMALLEST_GAP or token_id <= SOUND_TOKEN:
                return None
            greedy.append(token_id)
            logits = compute_logits(prompt + greedy)
    if len(set(greedy)) < GREEDY_LENGTH // 4:
        return None
    return {
        f"prompt.{count}": np.array(prompt, np.int64),
        f"num_tokens.{count}": np.array(counts, np.int64),
        f"features.{count}": rows.numpy().astype(np.float32),
        f"logits.{count}": prompt_logits.numpy().astype(np.float32),
        f"greedy.{count}": np.array(greedy, np.int64),
    }


def make_case(name: str, case: HearingCase) -> None:
    model = case.make_model().float().eval()
    fill(model, 0)
    embedded = Embedded(model)
    arrays: Json = {}
    for count in NUM_SOUNDS:
        tries = (compute_outputs(case, model, embedded, count, seed) for seed in range(NUM_TRIES))
        made = next((each for each in tries if each is not None), None)
        if made is None:
            raise SystemExit(f"{name}: no text keeps the best logits apart from the second")
        arrays |= made
    directory = GOLDEN / name
    shutil.rmtree(directory, ignore_errors=True)
    model.half().save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    case.extractor.save_pretrained(directory)
    np.savez_compressed(directory / "golden.npz", **arrays)
    print(f"{name}: {[len(arrays[f'prompt.{count}']) for count in NUM_SOUNDS]} tokens")


def main() -> None:
    for name in sys.argv[1:] or CASES:
        make_case(name, CASES[name])


if __name__ == "__main__":
    main()
