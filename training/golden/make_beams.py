"""Writes tests/backends/golden/beams.json: what beam search in transformers finds on the golden checkpoints."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden"
SEVERAL_ENDS = list(range(0, 320, 20))

# checkpoint, tokens of its golden prompt, transformers' settings
CASES: list[tuple[str, int, dict[str, Any]]] = [
    ("llama", 40, {"num_beams": 4, "eos_token_id": SEVERAL_ENDS}),
    (
        "llama",
        17,
        {
            "num_beams": 2,
            "length_penalty": 0.0,
            "eos_token_id": SEVERAL_ENDS,
            "early_stopping": "never",
        },
    ),
    (
        "llama",
        33,
        {
            "num_beams": 8,
            "length_penalty": 2.0,
            "eos_token_id": SEVERAL_ENDS,
            "early_stopping": True,
        },
    ),
    ("qwen3", 40, {"num_beams": 5, "length_penalty": -1.0, "eos_token_id": SEVERAL_ENDS}),
    (
        "qwen3",
        25,
        {
            "num_beams": 4,
            "length_penalty": 1.5,
            "eos_token_id": SEVERAL_ENDS,
            "early_stopping": "never",
        },
    ),
    ("llama-bias", 40, {"num_beams": 3}),
    ("llama-bias", 12, {"num_beams": 4, "repetition_penalty": 1.4, "eos_token_id": SEVERAL_ENDS}),
    (
        "mistral",
        40,
        {"num_beams": 6, "length_penalty": 0.7, "eos_token_id": SEVERAL_ENDS, "min_new_tokens": 6},
    ),
    ("smollm3", 40, {"num_beams": 4, "no_repeat_ngram_size": 2, "eos_token_id": SEVERAL_ENDS}),
]


def search(name: str, prompt_length: int, settings: dict[str, Any]) -> dict[str, Any]:
    model = AutoModelForCausalLM.from_pretrained(GOLDEN / name, dtype=torch.float32).eval()
    prompt = torch.tensor(
        [np.load(GOLDEN / name / "golden.npz")["prompt"][:prompt_length].tolist()]
    )
    with torch.no_grad():
        found = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            num_return_sequences=settings["num_beams"],
            max_new_tokens=24,
            do_sample=False,
            pad_token_id=319,
            return_dict_in_generate=True,
            output_scores=True,
            **settings,
        )
    ends = settings.get("eos_token_id", [])
    outputs = [_until_end(row, ends) for row in found.sequences[:, prompt_length:].tolist()]
    lengths = [len(output) for output in outputs]
    print(f"{name} {settings}: lengths {lengths}")
    scores = [round(score, 6) for score in found.sequences_scores.tolist()]
    return {
        "checkpoint": name,
        "prompt_length": prompt_length,
        **settings,
        "outputs": outputs,
        "scores": scores,
    }


def _until_end(token_ids: list[int], ends: list[int]) -> list[int]:
    """Without the padding after the end."""
    places = [place for place, token_id in enumerate(token_ids) if token_id in ends]
    return token_ids[: places[0] + 1] if places else token_ids


def main() -> None:
    cases = [search(*case) for case in CASES]
    (GOLDEN / "beams.json").write_text(
        "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"
    )


if __name__ == "__main__":
    main()
