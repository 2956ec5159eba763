"""Holds the exported checkpoint against transformers: the same token ids, features and logits.

python -m training.demo_vision.check_export [--model DIRECTORY]

It runs where torch and transformers are, and compressed-tensors once `tools.store_int8` has stored the checkpoint.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForImageTextToText,
    AutoTokenizer,
    CompressedTensorsConfig,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from training.demo_vision.checkpoint_files import MODEL_DIRECTORY
from training.demo_vision.encoder import Pictures
from training.demo_vision.export import load_exported
from training.demo_vision.judging import Asked, asked_by_skill
from training.demo_vision.model import Qwen3Vl, Rows
from training.demo_vision.rendering import Renderer
from training.demo_vision.sizes import sizes_of

LIMIT = 2e-3  # of the largest difference of two logits
NUM_EACH = 2  # conversations of each skill


class Reference:
    """The checkpoint as transformers loads it, in float32."""

    def __init__(self, directory: Path) -> None:
        is_quantised = hasattr(AutoConfig.from_pretrained(directory), "quantization_config")
        # Else it would multiply by the integers of the embedding, which is the head too.
        options = (
            {"quantization_config": CompressedTensorsConfig(dequantize=True)}
            if is_quantised
            else {}
        )
        self.model = AutoModelForImageTextToText.from_pretrained(
            directory, dtype=torch.float32, **options
        ).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(directory)
        self.processor = Qwen2VLImageProcessorPil.from_pretrained(directory)

    def token_ids(self, asked: Asked) -> list[int]:
        """Returns those of the whole conversation, rendered by transformers."""
        text = self.tokenizer.apply_chat_template(
            asked.conversation.messages, tokenize=False
        ).removesuffix("\n")
        first, *others = text.split("<|image_pad|>")
        pads = ["<|image_pad|>" * (rows * columns) for rows, columns in asked.grids]
        text = first + "".join(pad + other for pad, other in zip(pads, others, strict=True))
        return [int(token_id) for token_id in self.tokenizer(text)["input_ids"]]

    def logits(self, asked: Asked, token_ids: list[int]) -> Tensor:
        ids = torch.tensor([token_ids])
        named = {"mm_token_type_ids": (ids == self.model.config.image_token_id).long()}
        if asked.pictures:
            images = [Image.fromarray(pixels) for pixels in asked.pictures]
            made = self.processor(images, return_tensors="pt")
            named |= {
                "pixel_values": made["pixel_values"],
                "image_grid_thw": made["image_grid_thw"],
            }
        return self.model(input_ids=ids, **named).logits[0]


def own_logits(model: Qwen3Vl, renderer: Renderer, asked: Asked) -> tuple[list[int], Tensor]:
    tokens = renderer.tokens(asked.conversation, asked.grids)
    length = len(tokens.token_ids)
    rows = Rows(torch.arange(length)[None], torch.ones(1, length, dtype=torch.bool), None)
    hidden = model.hidden_states(
        torch.from_numpy(tokens.token_ids.astype(np.int64)),
        torch.from_numpy(tokens.positions.astype(np.int64)),
        model.features(
            [Pictures(torch.from_numpy(pixels.copy())[None]) for pixels in asked.pictures]
        ),
        torch.from_numpy(tokens.cells.astype(np.int64)),
        [rows],
    )
    return [int(token_id) for token_id in tokens.token_ids], model.logits(hidden)


@torch.no_grad()
def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=MODEL_DIRECTORY)
    options = parser.parse_args()
    reference, renderer = Reference(options.model), Renderer(options.model)
    config = json.loads((options.model / "config.json").read_text(encoding="utf-8"))
    model = Qwen3Vl(sizes_of(config)).eval()
    load_exported(model, options.model)
    largest, num = 0.0, 0
    for skill, asked in asked_by_skill(renderer, NUM_EACH, held_out=True).items():
        for each in asked:
            token_ids, logits = own_logits(model, renderer, each)
            if token_ids != reference.token_ids(each):
                raise SystemExit(f"{skill}: transformers has other token ids")
            largest, num = (
                max(largest, float((reference.logits(each, token_ids) - logits).abs().max())),
                num + 1,
            )
    print(f"{num} conversations, the largest difference of two logits is {largest:.1e}")
    if largest > LIMIT:
        raise SystemExit("the exported checkpoint does not compute what the trained model computes")


if __name__ == "__main__":
    main()
