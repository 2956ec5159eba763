"""Writes tests/backends/golden_seeing_prediction/: checkpoints that see and have a layer that predicts a further token.

An entry whose next token stands for a picture has the picture's features in place of an embedding, and the position of
its own token in the picture's grid, as in vLLM's qwen3_5_mtp.py. See README.md.
"""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from training.golden import make_prediction
from training.golden.cases import Case
from training.golden.make_golden import SMALLEST_GAP, random_model
from training.golden.make_prediction import NUM_DRAFTS, add_prediction, prediction_of
from training.golden.make_vision import (
    NUM_TRIES,
    Embedded,
    all_cases,
    outputs_for,
    picture,
)
from training.golden.vision import IMAGE_TOKEN, VisionCase

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_seeing_prediction"
COUNTS = (1, 2)  # of pictures in a prompt
CONFIG_KEYS: dict[str, dict[str, Any]] = {  # Any: what text_config has of the layer
    "qwen3_5": {"mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False},
    "glm_ocr": {"num_nextn_predict_layers": 1, "tie_word_embeddings": False},
}
LIKE_DEEPSEEK = ("glm_ocr",)


def outputs_with_prediction(
    case: VisionCase, model: Any, embedded: Embedded, count: int, seed: int
) -> dict[str, Any] | None:
    """Returns None where two logits are too near to each other, or drafts are alike."""
    outputs = outputs_for(case, model, embedded, count, seed)
    if outputs is None:
        return None
    length = len(outputs[f"prompt.{count}"])
    predicted, gap = prediction_of(
        model,
        model.model.get_decoder(),
        embedded.rows[None, :length],
        embedded.positions[..., :length],
        int(outputs[f"greedy.{count}"][0]),
    )
    drafts = predicted["drafts"].tolist()
    if gap < SMALLEST_GAP or len(set(drafts)) < NUM_DRAFTS or min(drafts) <= IMAGE_TOKEN:
        return None
    return outputs | {f"{name}.{count}": array for name, array in predicted.items()}


def make_case(name: str, case: VisionCase) -> None:
    tiny = Case(case.settings, factors=case.factors)
    model = random_model(tiny, case.first_seed)
    with torch.no_grad():
        # so that no answer has a picture
        model.get_output_embeddings().weight[: IMAGE_TOKEN + 1] = 0
    embedded = Embedded(model)
    decoder = model.model.get_decoder()
    add_prediction(model, decoder, tiny, case.first_seed)
    arrays: dict[str, Any] = {}
    for count in COUNTS:
        tries = (
            outputs_with_prediction(case, model, embedded, count, seed) for seed in range(NUM_TRIES)
        )
        made = next((each for each in tries if each is not None), None)
        if made is None:
            raise SystemExit(
                f"{name}: no text keeps the best logits apart from the second; try another first_seed"
            )
        arrays |= made
    shapes = case.pictures[: max(COUNTS)]
    arrays |= {f"picture.{number}": picture(shape, number) for number, shape in enumerate(shapes)}
    arrays["sizes"] = np.array([case.size(number) for number in range(len(shapes))])
    arrays["num_rows"] = np.array(
        [case.num_rows(shape, case.size(i)) for i, shape in enumerate(shapes)]
    )
    if case.grid is not None:
        arrays["grids"] = np.array([case.grid(shape) for shape in shapes])
    directory = GOLDEN / name
    shutil.rmtree(directory, ignore_errors=True)
    model.to(torch.bfloat16).save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    np.savez_compressed(directory / "golden.npz", **arrays)
    if name in LIKE_DEEPSEEK:
        make_prediction.rename(directory, decoder.config.num_hidden_layers, "model.language_model.")
    print(name)


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or CONFIG_KEYS:
        case = all_cases()[name]
        text = {**case.settings["text_config"], **CONFIG_KEYS[name]}
        make_case(name, replace(case, settings={**case.settings, "text_config": text}))


if __name__ == "__main__":
    main()
