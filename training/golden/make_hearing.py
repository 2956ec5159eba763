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
    Gemma4AudioFeatureExtractor,
    Gemma4UnifiedAudioFeatureExtractor,
    Qwen2AudioConfig,
    Qwen2AudioForConditionalGeneration,
    WhisperFeatureExtractor,
)

from training.golden.cases import Case
from training.golden.cases.gemma4 import CALM, FULL, SLIDING
from training.golden.make_golden import SMALLEST_GAP, best_token, random_model, random_weights
from training.golden.make_vision import normalised, picture
from training.golden.vision import gemma4 as gemma4_vision

Json = dict[str, Any]  # Any: as transformers has it

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_hearing"
SOUND_TOKEN = 7  # of all cases; texts have larger ids
IMAGE_TOKEN = 6
PICTURES = ((1, 48, 48), (1, 24, 60))  # of a prompt with pictures and sounds: tiles, height, width
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


@dataclass(frozen=True)
class HearingCase:
    make_model: Callable[[], Any]  # Any: a model of transformers, with random weights of f16
    extractor: Any
    options: Json  # of the extractor
    mask: tuple[str, str]  # the extractor's name of the mask of frames, and the model's
    num_tokens: Callable[[int], int]  # of a sound with so many frames
    # The model sees, too: the arguments of forward() for pictures, and the tokens of each picture.
    see: Callable[[list[Any]], tuple[Json, list[int]]] | None = None
    stores_features: bool = False  # golden.npz has the extractor's features, [bins, frames]


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
    model = Qwen2AudioForConditionalGeneration._from_config(config, attn_implementation="eager")
    model = model.float().eval()
    fill(model, 0)
    return model


def make_gemma4() -> Any:
    text = {
        **gemma4_vision.TEXT,
        "vocab_size": VOCAB_SIZE,
        "num_hidden_layers": 4,
        "layer_types": [SLIDING, FULL, SLIDING, FULL],
        "num_kv_shared_layers": 2,
        "num_key_value_heads": 1,
        "hidden_size_per_layer_input": 16,
        "vocab_size_per_layer_input": VOCAB_SIZE,
        "intermediate_size": 32,
    }
    settings = {
        "model_type": "gemma4",
        "image_token_id": IMAGE_TOKEN,
        "video_token_id": 5,
        "audio_token_id": SOUND_TOKEN,
        "tie_word_embeddings": False,
        "text_config": text,
        "vision_config": {
            **gemma4_vision.VISION,
            "num_hidden_layers": 2,
            "use_clipped_linears": True,
        },
        "audio_config": {
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "subsampling_conv_channels": [128, 4],
            "attention_logit_cap": 4.0,
            "output_proj_dims": 24,
        },
    }
    return random_model(Case(settings, factors=CALM, dtype=torch.float16), 0)


def make_gemma4_unified() -> Any:
    settings = {
        "model_type": "gemma4_unified",
        "image_token_id": IMAGE_TOKEN,
        "video_token_id": 5,
        "audio_token_id": SOUND_TOKEN,
        "tie_word_embeddings": False,
        "text_config": {
            **{key: each for key, each in gemma4_vision.TEXT.items() if "per_layer" not in key},
            "model_type": "gemma4_unified_text",
            "vocab_size": VOCAB_SIZE,
            "num_hidden_layers": 3,
            "layer_types": [SLIDING, SLIDING, FULL],
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 1,
            "use_bidirectional_attention": "vision",
        },
        "vision_config": {
            "patch_size": 4,
            "mm_embed_dim": 16,
            "mm_posemb_size": 8,
            "output_proj_dims": 16,
        },
        "audio_config": {"audio_embed_dim": 640},
    }
    return random_model(Case(settings, factors=CALM, dtype=torch.float16), 0)


def see_as_gemma4(pixels: list[Any]) -> tuple[Json, list[int]]:
    unit = gemma4_vision.UNIT
    counts = [(each.shape[2] // unit) * (each.shape[3] // unit) for each in pixels]
    return gemma4_vision.inputs(pixels, []), counts


CASES = {
    "gemma4": HearingCase(
        make_gemma4,
        Gemma4AudioFeatureExtractor(),
        options={},
        mask=("input_features_mask", "input_features_mask"),
        num_tokens=lambda num_frames: -(-(-(-num_frames // 2)) // 2),
        see=see_as_gemma4,
        stores_features=True,
    ),
    "gemma4_unified": HearingCase(
        make_gemma4_unified,
        Gemma4UnifiedAudioFeatureExtractor(),
        options={},
        mask=("input_features_mask", "input_features_mask"),
        num_tokens=lambda num_frames: num_frames,
        stores_features=True,
    ),
    "qwen2_audio": HearingCase(
        make_qwen2_audio,
        WhisperFeatureExtractor(feature_size=128),
        options={"return_attention_mask": True, "padding": "max_length"},
        mask=("attention_mask", "feature_attention_mask"),
        num_tokens=lambda num_frames: (((num_frames - 1) // 2 + 1) - 2) // 2 + 1,
    ),
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


def make_prompt(media: list[tuple[int, int]], seed: int) -> list[int]:
    """Makes text before, between and after media: a token of each, and so many times."""
    generator = np.random.default_rng(seed + len(media))

    def text(length: int) -> list[int]:
        return [int(each) for each in generator.integers(SOUND_TOKEN + 1, VOCAB_SIZE, length)]

    token_ids = text(9)
    for number, (token_id, count) in enumerate(media):
        token_ids += [token_id] * count + text(3 + number)
    return token_ids


class Embedded:
    """Notes what enters the language model in place of tokens."""

    def __init__(self, model: Any) -> None:
        self.rows: Any = None
        model.model.language_model.register_forward_pre_hook(self.note, with_kwargs=True)

    def note(self, module: Any, arguments: Any, named: Json) -> None:
        self.rows = named["inputs_embeds"][0]


def hear(case: HearingCase, count: int) -> tuple[Json, list[int], Json]:
    """Returns the arguments of forward() for sounds, the tokens of each sound, and the features."""
    sounds = [make_sound(number) for number in range(count)]
    made = case.extractor(sounds, sampling_rate=SAMPLE_RATE, return_tensors="pt", **case.options)
    mask = made[case.mask[0]]
    lengths = [int(each) for each in mask.sum(-1)]
    arguments = {"input_features": made["input_features"], case.mask[1]: mask}
    features = {
        f"mel.{number}": made["input_features"][number, :length].numpy().T
        for number, length in enumerate(lengths)
        if case.stores_features
    }
    return arguments, [case.num_tokens(each) for each in lengths], features


def compute_outputs(
    case: HearingCase, model: Any, embedded: Embedded, name: str, seed: int
) -> Json | None:
    """Returns None where the best logit and the second are too near to each other.

    `name` is the number of sounds, or "mixed": a picture, two sounds, and a picture.
    """
    is_mixed = name == "mixed"
    arguments, counts, _ = hear(case, 2 if is_mixed else int(name))
    media = [(SOUND_TOKEN, each) for each in counts]
    if is_mixed:
        assert case.see is not None
        pixels = [picture(shape, number) for number, shape in enumerate(PICTURES)]
        seen, (first, last) = case.see([normalised(each) for each in pixels])
        media = [(IMAGE_TOKEN, first), *media, (IMAGE_TOKEN, last)]
        arguments |= seen
    prompt = make_prompt(media, seed)

    def compute_logits(ids: list[int]) -> Any:
        return model(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            **arguments,
            use_cache=False,
        ).logits[0]

    greedy: list[int] = []
    with torch.no_grad():
        logits = prompt_logits = compute_logits(prompt)
        rows = embedded.rows[[at for at, each in enumerate(prompt) if each <= SOUND_TOKEN]]
        for _ in range(GREEDY_LENGTH):
            token_id, gap = best_token(logits[-1])
            if gap < SMALLEST_GAP or token_id <= SOUND_TOKEN:
                return None
            greedy.append(token_id)
            logits = compute_logits(prompt + greedy)
    if len(set(greedy)) < GREEDY_LENGTH // 4:
        return None
    return {
        f"prompt.{name}": np.array(prompt, np.int64),
        f"num_tokens.{name}": np.array(counts, np.int64),
        f"features.{name}": rows.numpy().astype(np.float32),
        f"logits.{name}": prompt_logits.numpy().astype(np.float32),
        f"greedy.{name}": np.array(greedy, np.int64),
    }


def make_case(name: str, case: HearingCase) -> None:
    model = case.make_model()
    with torch.no_grad():
        # so that no answer has a sound
        model.get_output_embeddings().weight[: SOUND_TOKEN + 1] = 0
    embedded = Embedded(model)
    arrays: Json = hear(case, len(SOUND_LENGTHS))[2]
    prompts = [*map(str, NUM_SOUNDS), *(["mixed"] if case.see else [])]
    for prompt in prompts:
        tries = (compute_outputs(case, model, embedded, prompt, seed) for seed in range(NUM_TRIES))
        made = next((each for each in tries if each is not None), None)
        if made is None:
            raise SystemExit(f"{name}: no text keeps the best logits apart from the second")
        arrays |= made
    if case.see is not None:
        arrays |= {
            f"picture.{number}": picture(shape, number) for number, shape in enumerate(PICTURES)
        }
    directory = GOLDEN / name
    shutil.rmtree(directory, ignore_errors=True)
    model.half().save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    case.extractor.save_pretrained(directory)
    np.savez_compressed(directory / "golden.npz", **arrays)
    print(f"{name}: {[len(arrays[f'prompt.{each}']) for each in prompts]} tokens")


def main() -> None:
    for name in sys.argv[1:] or CASES:
        make_case(name, CASES[name])


if __name__ == "__main__":
    main()
