"""Makes a truth with transformers in float32. Runs in an interpreter with torch, transformers and
gguf.

usage: PYTHON -m benchmarks.quality.transformers_truth ORDER.json

ORDER has `model` (a GGUF file, which the gguf package dequantises, or a directory), `windows` and
`out`, an .npz file. With `full` the logits [W, S, vocabulary] of all scored positions go into that
file as well.
"""

import json
import sys
from pathlib import Path
from typing import Any  # torch and transformers are absent where types are checked

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from benchmarks.quality.truth import NUM_GREEDY, TruthBuilder, scored_positions


def load(path: Path) -> Any:
    options = {"dtype": torch.float32, "attn_implementation": "eager"}
    if path.is_dir():
        return AutoModelForCausalLM.from_pretrained(str(path), **options).eval()
    return AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, **options
    ).eval()


def continue_greedily(model: Any, prompts: list[list[int]]) -> list[list[int]]:
    """Returns the tokens with the largest logits, whether or not one of them ends a text. Prompts
    have one length.
    """
    steps: list[list[int]] = []
    cache, new = None, torch.tensor(prompts)
    while len(steps) < NUM_GREEDY:
        output = model(new, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache = output.past_key_values
        new = output.logits[:, -1:].argmax(dim=-1)
        steps.append(new[:, 0].tolist())
    return [list(each) for each in zip(*steps, strict=True)]


def main() -> None:
    order = json.loads(Path(sys.argv[1]).read_text())
    model = load(Path(order["model"]))
    windows: list[list[int]] = order["windows"]
    builder = TruthBuilder()
    full = []
    with torch.inference_mode():
        greedy = continue_greedily(model, [window[: len(window) // 2] for window in windows])
        for window, continuation in zip(windows, greedy, strict=True):
            logits = model(torch.tensor([window])).logits[0].numpy()[scored_positions(len(window))]
            builder.add(np.array(window, np.int32), logits, continuation)
            full.append(logits)
    builder.build().save(Path(order["out"]))
    if "full" in order:
        np.save(order["full"], np.array(full))


if __name__ == "__main__":
    main()
