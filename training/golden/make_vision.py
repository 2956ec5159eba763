"""Writes tests/backends/golden_vision/: tiny random checkpoints that see, and what transformers makes of pictures.

See README.md.
"""

import importlib
import pkgutil
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from training.golden import vision
from training.golden.cases import Case
from training.golden.make_golden import SMALLEST_GAP, as_published, fill, random_model
from training.golden.vision import IMAGE_TOKEN, Pixels, VisionCase

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_vision"
GREEDY_LENGTH = 32
NUM_PICTURES = (1, 2, 4)
NUM_TRIES = 60


def picture(shape: tuple[int, int, int], seed: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Returns [tiles, height, width, 3]: not only noise, of which all patches look alike."""
    generator = np.random.default_rng(seed)
    tiles, height, width = shape
    coarse = generator.integers(0, 256, (tiles, -(-height // 4), -(-width // 4), 3))
    smooth = coarse.repeat(4, axis=1).repeat(4, axis=2)[:, :height, :width]
    return np.clip(smooth + generator.integers(-40, 41, (tiles, height, width, 3)), 0, 255).astype(
        np.uint8
    )


def normalised(pixels: np.ndarray[Any, np.dtype[np.uint8]]) -> Pixels:
    scaled = (pixels.astype(np.float32) * np.float32(1 / 255) - np.float32(0.5)) / np.float32(0.5)
    return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2))


def prompt(case: VisionCase, num_pictures: int, vocab_size: int, seed: int) -> list[int]:
    """Text before, between and after so many pictures."""
    generator = np.random.default_rng(seed + num_pictures)

    def text(length: int) -> list[int]:
        return [int(each) for each in generator.integers(IMAGE_TOKEN + 1, vocab_size, length)]

    token_ids = text(9)
    for number in range(num_pictures):
        rows = [IMAGE_TOKEN] * case.num_rows(case.pictures[number], case.size(number))
        step = case.spaced or len(rows)
        for begin in range(0, len(rows), step):
            token_ids += rows[begin : begin + step] + (text(1) if case.spaced else [])
        token_ids += text(3 + number)
    return token_ids


class Embedded:
    """Notes what enters the language model in place of images' tokens."""

    def __init__(self, model: Any) -> None:
        self.rows: Any = None
        self.positions: Any = None
        self.deep: list[Any] = []
        model.model.get_decoder().register_forward_pre_hook(self.note, with_kwargs=True)

    def note(self, module: Any, arguments: Any, named: dict[str, Any]) -> None:
        self.rows = named["inputs_embeds"][0]
        self.positions = named.get("position_ids")
        self.deep = list(named.get("deepstack_visual_embeds") or [])
        by_layer = named.get("deepstack_features")
        if by_layer is not None:  # Granite 4 Vision adds features before any layer, also the first
            is_image = named["vision_mask"][0, :, 0]
            assert not self.rows[is_image].any()
            if 0 in by_layer:
                self.rows = self.rows.masked_scatter(is_image[:, None], by_layer[0])
            self.deep = [by_layer[layer] for layer in sorted(by_layer) if layer > 0]


def outputs_for(
    case: VisionCase, model: Any, embedded: Embedded, count: int, seed: int
) -> dict[str, Any] | None:
    """Returns None where the best logit and the second are too near to each other. `seed` is of the text."""
    pictures = [picture(shape, number) for number, shape in enumerate(case.pictures[:count])]
    inputs = case.inputs(
        [normalised(each) for each in pictures], [case.size(number) for number in range(count)]
    )
    token_ids = prompt(case, count, model.config.get_text_config().vocab_size, seed)

    def logits_of(ids: list[int]) -> Any:
        if case.reads_prompts_both_ways:
            of_tokens = [int(place >= len(token_ids)) for place in range(len(ids))]
        else:
            of_tokens = [int(each == IMAGE_TOKEN) for each in ids]
        types = {case.types_name: torch.tensor([of_tokens])} if case.types_name else {}
        return model(input_ids=torch.tensor([ids]), **inputs, **types, use_cache=False).logits[0]

    greedy: list[int] = []
    with torch.no_grad():
        logits = prompt_logits = logits_of(token_ids)
        image_rows = [place for place, each in enumerate(token_ids) if each == IMAGE_TOKEN]
        features = torch.stack([embedded.rows[image_rows], *embedded.deep])
        for _ in range(GREEDY_LENGTH):
            best = torch.topk(logits[-1], 2)
            gap = float((best.values[0] - best.values[1]) / logits[-1].std())
            if gap < SMALLEST_GAP or int(best.indices[0]) <= IMAGE_TOKEN:
                return None
            greedy.append(int(best.indices[0]))
            logits = logits_of(token_ids + greedy)
    if len(set(greedy)) < GREEDY_LENGTH // 4:
        return None
    return {
        f"prompt.{count}": np.array(token_ids, np.int64),
        f"features.{count}": features.numpy().astype(np.float32),
        f"logits.{count}": prompt_logits.numpy().astype(np.float32),
        f"greedy.{count}": np.array(greedy, np.int64),
    }


def make_model(case: VisionCase) -> Any:
    settings = Case(case.settings, factors=case.factors)
    if case.make_model is None:
        return random_model(settings, case.first_seed)
    model = case.make_model(case.settings).float().eval()
    fill(model, settings, case.first_seed)
    return model


def drop_tensors(path: Path, beginnings: tuple[str, ...]) -> None:
    tensors = load_file(path)
    kept = {name: each for name, each in tensors.items() if not name.startswith(beginnings)}
    assert len(kept) < len(tensors)
    save_file(kept, path, metadata={"format": "pt"})


def make_case(name: str, case: VisionCase) -> None:
    model = make_model(case)
    with torch.no_grad():
        # so that no answer has a picture
        model.get_output_embeddings().weight[: IMAGE_TOKEN + 1] = 0
    embedded = Embedded(model)
    arrays: dict[str, Any] = {}
    for count in NUM_PICTURES:
        tries = (outputs_for(case, model, embedded, count, seed) for seed in range(NUM_TRIES))
        made = next((each for each in tries if each is not None), None)
        if made is None:
            raise SystemExit(
                f"{name}: no text keeps the best logits apart from the second; try another first_seed"
            )
        arrays |= made
    arrays |= {
        f"picture.{number}": picture(shape, number) for number, shape in enumerate(case.pictures)
    }
    arrays["sizes"] = np.array([case.size(number) for number in range(len(case.pictures))])
    arrays["num_rows"] = np.array(
        [case.num_rows(shape, case.size(i)) for i, shape in enumerate(case.pictures)]
    )
    if case.grid is not None:
        arrays["grids"] = np.array([case.grid(shape) for shape in case.pictures])
    directory = GOLDEN / name
    shutil.rmtree(directory, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(directory)
    if case.unused:
        drop_tensors(directory / "model.safetensors", case.unused)
    (directory / "generation_config.json").unlink(missing_ok=True)
    if case.published:
        as_published(directory / "config.json", case.published)
    np.savez_compressed(directory / "golden.npz", **arrays)
    print(name)


def all_cases() -> dict[str, VisionCase]:
    modules = (
        importlib.import_module(f"{vision.__name__}.{module.name}")
        for module in pkgutil.iter_modules(vision.__path__)
    )
    return {name: case for module in modules for name, case in module.CASES.items()}


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    known = all_cases()
    for name in sys.argv[1:] or known:
        make_case(name, known[name])


if __name__ == "__main__":
    main()
