"""Writes the checkpoints with the encoder AuT in tests/backends/golden_hearing/. See README.md."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch.nn.functional import pad
from transformers import (
    Qwen3ASRConfig,
    Qwen3ASRFeatureExtractor,
    Qwen3ASRForConditionalGeneration,
    Qwen3OmniMoeThinkerConfig,
    Qwen3OmniMoeThinkerForConditionalGeneration,
    WhisperFeatureExtractor,
)

from training.golden.cases import rope
from training.golden.make_golden import SMALLEST_GAP, best_token, random_weights
from training.golden.make_vision import normalised, picture
from training.golden.vision.qwen import inputs as patches

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_hearing"
SOUND_TOKEN = 7  # of all cases; texts have larger ids
SAMPLE_RATE = 16_000
# samples of the sounds; the tests make the same: one window of attention of the encoder, less than the shortest sound, more than one window
SOUND_LENGTHS = (32_000, 5_000, 52_123)
NUM_SOUNDS = (1, 2, 3)
GREEDY_LENGTH = 24
NUM_TRIES = 400
NUM_EDGE_FRAMES = 8
IMAGE_TOKEN, VISION_START, AUDIO_START = 6, 5, 4
PATCH = 4
PICTURES = ((1, 24, 40), (1, 16, 16))
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
    # gives the model's inputs for some sounds, and the number of tokens of each
    prepare: Callable[[Any, list[NDArray[np.float32]]], tuple[Json, list[int]]]
    lengths: tuple[int, ...] = SOUND_LENGTHS
    is_thinker: bool = False  # stored as a part of a larger model, and sees pictures
    seed: int = 0  # of the weights
    greedy_length: int = GREEDY_LENGTH


def make_sound(number: int, length: int) -> NDArray[np.float32]:
    """Makes a sound of tones and noise, in 16-bit steps as sound files have them."""
    times = np.arange(length) / SAMPLE_RATE
    tones = sum(
        np.sin(2 * np.pi * hertz * (number + 1) * times * (1 + times)) for hertz in (150, 410, 990)
    )
    noise = np.random.default_rng(number).standard_normal(len(times))
    samples = np.rint((tones * 0.2 + noise * 0.02) * 2**15).clip(-(2**15), 2**15 - 1)
    return (samples / 2**15).astype(np.float32)


def make_qwen3_asr() -> Any:
    config = Qwen3ASRConfig(
        audio_config={
            "encoder_layers": 5,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 48,
            "d_model": 32,
            "output_dim": TEXT["hidden_size"],
            "n_window_infer": 200,
            "downsample_hidden_size": 8,
        },
        text_config={"model_type": "qwen3", "head_dim": 16, **TEXT},
        audio_token_id=SOUND_TOKEN,
        timestamp_token_id=SOUND_TOKEN - 1,
        eos_token_id=SOUND_TOKEN - 2,
        pad_token_id=SOUND_TOKEN - 2,
        tie_word_embeddings=False,
    )
    return Qwen3ASRForConditionalGeneration._from_config(config, attn_implementation="eager")


def prepare_alone(extractor: Any, sounds: list[NDArray[np.float32]]) -> tuple[Json, list[int]]:
    """Computes the features of each sound alone: with others, silence would follow the shorter."""
    made = [
        extractor(
            each,
            sampling_rate=SAMPLE_RATE,
            return_tensors="pt",
            return_attention_mask=True,
            padding=True,
        )
        for each in sounds
    ]
    num_frames = -(-max(each["input_features"].shape[-1] for each in made) // 100) * 100
    features, mask = (
        torch.cat([pad(each[key], (0, num_frames - each[key].shape[-1])) for each in made])
        for key in ("input_features", "attention_mask")
    )
    counts = [
        sum(int(rows) for rows in -(-chunks // 8))
        for chunks in mask.reshape(len(sounds), -1, 100).sum(-1)
    ]
    return {"input_features": features, "input_features_mask": mask}, counts


def make_qwen3_omni_moe() -> Any:
    config = Qwen3OmniMoeThinkerConfig(
        audio_config={
            "encoder_layers": 3,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 48,
            "d_model": 32,
            "output_dim": TEXT["hidden_size"],
            "n_window_infer": 200,
            "downsample_hidden_size": 8,
        },
        vision_config={
            "depth": 4,
            "hidden_size": 32,
            "out_hidden_size": TEXT["hidden_size"],
            "num_heads": 2,
            "intermediate_size": 56,
            "num_position_embeddings": 36,
            "deepstack_visual_indexes": [0, 2],
            "patch_size": PATCH,
        },
        text_config={
            **TEXT,
            "num_hidden_layers": 3,
            "head_dim": 16,
            "num_experts": 5,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 24,
            "rope_parameters": rope(mrope_section=[3, 3, 2], mrope_interleaved=True),
        },
        audio_token_id=SOUND_TOKEN,
        image_token_id=IMAGE_TOKEN,
        vision_start_token_id=VISION_START,
        audio_start_token_id=AUDIO_START,
        video_token_id=2,
    )
    model = Qwen3OmniMoeThinkerForConditionalGeneration._from_config(
        config, attn_implementation="eager"
    )
    encode = model.model.get_audio_features

    def encode_alone(features: Any, mask: Any, *_: Any, **options: Any) -> Any:
        """Encodes each sound alone: with others, zeros would follow a sound of less than a second."""
        made = [
            encode(features[i : i + 1], mask[i : i + 1], return_dict=True) for i in range(len(mask))
        ]
        made[0].last_hidden_state = torch.cat([each.last_hidden_state for each in made])
        return made[0]

    model.model.get_audio_features = encode_alone
    return model


def prepare_omni(extractor: Any, sounds: list[NDArray[np.float32]]) -> tuple[Json, list[int]]:
    inputs, counts = prepare_alone(extractor, sounds)
    return {
        "input_features": inputs["input_features"],
        "feature_attention_mask": inputs["input_features_mask"],
    }, counts


CASES = {
    "qwen3_omni_moe": HearingCase(
        make_qwen3_omni_moe,
        WhisperFeatureExtractor(feature_size=128),
        prepare_omni,
        is_thinker=True,
        seed=7,
        greedy_length=8,
    ),
    "qwen3_asr": HearingCase(make_qwen3_asr, Qwen3ASRFeatureExtractor(), prepare_alone, seed=1),
}


def fill(model: Any, seed: int) -> None:
    """Gives the model random weights of f16; positions of the encoder stay sinusoids."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                values = random_weights(name, parameter.shape, generator)
                if parameter.dim() >= 3:  # a convolution: its inputs are channels and taps
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
    sounds = [make_sound(number, case.lengths[number]) for number in range(count)]
    inputs, counts = case.prepare(case.extractor, sounds)
    prompt = make_prompt(counts, seed)

    def compute_logits(ids: list[int]) -> Any:
        return model(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            use_cache=False,
            **inputs,
        ).logits[0]

    greedy: list[int] = []
    with torch.no_grad():
        logits = prompt_logits = compute_logits(prompt)
        rows = embedded.rows[[at for at, each in enumerate(prompt) if each == SOUND_TOKEN]]
        for _ in range(case.greedy_length):
            token_id, gap = best_token(logits[-1])
            if gap < SMALLEST_GAP or token_id <= SOUND_TOKEN:
                return None
            greedy.append(token_id)
            logits = compute_logits(prompt + greedy)
    if len(set(greedy)) < case.greedy_length // 4:
        return None
    return {
        f"prompt.{count}": np.array(prompt, np.int64),
        f"num_tokens.{count}": np.array(counts, np.int64),
        f"features.{count}": rows.numpy().astype(np.float32),
        f"logits.{count}": prompt_logits.numpy().astype(np.float32),
        f"greedy.{count}": np.array(greedy, np.int64),
    }


def compute_mixed(case: HearingCase, model: Any) -> Json:
    """Returns the values for a prompt with a picture, a sound and another picture."""
    pictures = [picture(shape, number) for number, shape in enumerate(PICTURES)]
    sounds = [make_sound(1, case.lengths[1])]
    inputs, [count] = case.prepare(case.extractor, sounds)
    seen = patches(PATCH, [normalised(each) for each in pictures], [])
    rows = [height * width // (2 * PATCH) ** 2 for _, height, width in PICTURES]
    for seed in range(NUM_TRIES):
        generator = np.random.default_rng(seed)
        text = iter(generator.integers(SOUND_TOKEN + 1, VOCAB_SIZE, 24).tolist())
        prompt = [next(text) for _ in range(7)]
        prompt += [VISION_START, *[IMAGE_TOKEN] * rows[0], 3, next(text), next(text)]
        prompt += [AUDIO_START, *[SOUND_TOKEN] * count, 3, next(text)]
        prompt += [VISION_START, *[IMAGE_TOKEN] * rows[1], 3, *text]

        def compute_logits(ids: list[int]) -> Any:
            token_ids = torch.tensor([ids])
            mask = torch.ones_like(token_ids)
            return model(
                input_ids=token_ids, attention_mask=mask, use_cache=False, **inputs, **seen
            ).logits[0]

        greedy: list[int] = []
        with torch.no_grad():
            logits = prompt_logits = compute_logits(prompt)
            for _ in range(case.greedy_length):
                token_id, gap = best_token(logits[-1])
                if gap < SMALLEST_GAP or token_id <= SOUND_TOKEN:
                    break
                greedy.append(token_id)
                logits = compute_logits(prompt + greedy)
        if len(greedy) == case.greedy_length and len(set(greedy)) >= case.greedy_length // 4:
            return {
                **{f"picture.{number}": each for number, each in enumerate(pictures)},
                "prompt.mixed": np.array(prompt, np.int64),
                "logits.mixed": prompt_logits.numpy().astype(np.float32),
                "greedy.mixed": np.array(greedy, np.int64),
            }
    raise SystemExit("no text with pictures keeps the best logits apart from the second")


def store_as_part(directory: Path) -> None:
    """Stores the thinker as Qwen's checkpoints have it, beside a part that speaks."""
    tensors = load_file(directory / "model.safetensors")
    named = {f"thinker.{name}": each for name, each in tensors.items()}
    named["talker.codec_head.weight"] = torch.zeros(2, 2, dtype=torch.float16)
    save_file(named, directory / "model.safetensors", metadata={"format": "pt"})
    path = directory / "config.json"
    thinker = json.loads(path.read_text())
    config = {"model_type": "qwen3_omni_moe", "thinker_config": thinker, "talker_config": {}}
    path.write_text(json.dumps(config, indent=2) + "\n")


def first_and_last_frames(case: HearingCase) -> Json:
    """Returns some frames of each sound's spectrogram, whose length is the sound's own."""
    arrays: Json = {}
    for number, length in enumerate(case.lengths):
        inputs, _ = case.prepare(case.extractor, [make_sound(number, length)])
        own = inputs["input_features"][0][:, inputs["input_features_mask"][0].bool()].numpy()
        edges = np.concatenate([own[:, :NUM_EDGE_FRAMES], own[:, -NUM_EDGE_FRAMES:]], axis=1)
        arrays |= {f"mel.{number}": edges, f"num_frames.{number}": np.array(own.shape[1])}
    return arrays


def make_case(name: str, case: HearingCase) -> None:
    model = case.make_model().float().eval()
    fill(model, case.seed)
    embedded = Embedded(model)
    arrays: Json = {}
    for count in NUM_SOUNDS:
        tries = (compute_outputs(case, model, embedded, count, seed) for seed in range(NUM_TRIES))
        made = next((each for each in tries if each is not None), None)
        if made is None:
            raise SystemExit(f"{name}: no text keeps the best logits apart from the second")
        arrays |= made
    if case.is_thinker:
        arrays |= compute_mixed(case, model)
    if case.prepare is prepare_alone:
        arrays |= first_and_last_frames(case)
    directory = GOLDEN / name
    shutil.rmtree(directory, ignore_errors=True)
    model.half().save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    if case.is_thinker:
        store_as_part(directory)
    case.extractor.save_pretrained(directory)
    np.savez_compressed(directory / "golden.npz", **arrays)
    print(f"{name}: {[len(arrays[f'prompt.{count}']) for count in NUM_SOUNDS]} tokens")


def main() -> None:
    torch.set_num_threads(1)  # the models are tiny
    for name in sys.argv[1:] or CASES:
        make_case(name, CASES[name])


if __name__ == "__main__":
    main()
