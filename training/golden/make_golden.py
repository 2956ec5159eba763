"""Writes tests/backends/golden/: tiny random checkpoints and what transformers makes of them. See README.md."""

import importlib
import json
import pkgutil
import shutil
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from training.golden import cases
from training.golden.cases import BASE, Case
from training.golden.cases.llama_kin import ROPE_CASES

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden"
PROMPT_LENGTH = 40
GREEDY_LENGTH = 64
SPREADS = {  # mean and deviation of what has such a name
    "bias": (0.0, 0.3),
    "A_log": (-0.5, 1.5),  # rates of decay, of which some forget at once and others late
    ".D": (1.0, 0.5),  # what Mamba-2 adds of a head's input
}
SMALLEST_GAP = 0.02  # between the best and the second logit, in standard deviations of the logits


def random_model(case: Case, seed: int) -> Any:
    """Weights large enough that attention is far from uniform, norms and biases far from neutral."""
    if "text_config" in case.settings:
        text = {**BASE, **case.settings["text_config"]}
        config = AutoConfig.for_model(**{**case.settings, "text_config": text})
        model = AutoModelForImageTextToText.from_config(config, attn_implementation="eager")
    else:
        config = AutoConfig.for_model(**{**BASE, **case.settings})
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model = model.float().eval()
    fill(model, case, seed)
    return model


def fill(module: torch.nn.Module, case: Case, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    stored = module.state_dict()
    with torch.no_grad():
        for name, tensor in chain(module.named_parameters(), module.named_buffers()):
            if name in stored:
                tensor.copy_(random_weights(name, tensor.shape, generator))
                for part, factor in case.factors.items():
                    if part in name:
                        tensor.mul_(factor)
            if name in stored or name.endswith(
                "embed_scale"
            ):  # which is of the weights' type as the model is loaded
                tensor.copy_(tensor.to(case.dtype).float())


def random_weights(name: str, shape: torch.Size, generator: torch.Generator) -> torch.Tensor:
    noise = torch.randn(shape, generator=generator)
    for ending, (mean, deviation) in SPREADS.items():
        if name.endswith(ending):
            return mean + deviation * noise
    if "norm" in name or ".ln_" in name or name.endswith(("scale", "scalar")):
        return 1 + 0.2 * noise
    if name.endswith(("put_min", "put_max")):  # that values are clipped to
        return (1 + noise.abs()) * (1 if name.endswith("max") else -1)
    if len(shape) < 2:  # of an activation function, or sinks
        return 0.5 * noise
    return noise * (1.5 / shape[-1] ** 0.5)


def best_token(logits: torch.Tensor) -> tuple[int, float]:
    """Returns the token of the best logit, and how far the second is from it in standard deviations of the logits."""
    best = torch.topk(logits, 2)
    return int(best.indices[0]), float((best.values[0] - best.values[1]) / logits.std())


def golden_outputs(model: Any, seed: int) -> tuple[dict[str, np.ndarray[Any, Any]], float]:
    """The arrays of golden.npz, and the smallest gap in standard deviations."""
    vocab_size = model.config.get_text_config().vocab_size
    token_ids = np.random.default_rng(seed).integers(0, vocab_size, PROMPT_LENGTH).tolist()
    greedy: list[int] = []
    smallest_gap = float("inf")
    with torch.no_grad():
        logits = prompt_logits = model(torch.tensor([token_ids]), use_cache=False).logits[0]
        for _ in range(GREEDY_LENGTH):
            token_id, gap = best_token(logits[-1])
            smallest_gap = min(smallest_gap, gap)
            if smallest_gap < SMALLEST_GAP:
                break  # another seed
            greedy.append(token_id)
            logits = model(torch.tensor([token_ids + greedy]), use_cache=False).logits[0]
    outputs = {
        "prompt": np.array(token_ids, np.int64),
        "logits": prompt_logits.numpy().astype(np.float32),
        "greedy": np.array(greedy, np.int64),
    }
    scaling = getattr(model.config, "rope_parameters", None) or {}
    if scaling.get("rope_type") == "longrope":
        short = torch.tensor([token_ids[: scaling["original_max_position_embeddings"]]])
        with (
            torch.no_grad()
        ):  # by the short factors, as the sequence is no longer than the original context
            outputs["short_logits"] = (
                model(short, use_cache=False).logits[0].numpy().astype(np.float32)
            )
    rotary = getattr(model.base_model, "rotary_emb", None)
    if hasattr(rotary, "inv_freq"):  # one rope for all layers
        outputs["inverse_frequencies"] = rotary.inv_freq.numpy().astype(np.float32)
        outputs["attention_scaling"] = np.float32(rotary.attention_scaling)
    return outputs, smallest_gap


def older_rope_keys(path: Path) -> None:
    """Rewrites config.json as transformers 4 wrote it."""
    config = json.loads(path.read_text())
    parameters = config.pop("rope_parameters")
    config["rope_theta"] = parameters.pop("rope_theta")
    if "partial_rotary_factor" in parameters:
        config["partial_rotary_factor"] = parameters.pop("partial_rotary_factor")
    if "original_max_position_embeddings" in config:
        parameters.pop("original_max_position_embeddings", None)
    config["rope_scaling"] = None if parameters["rope_type"] == "default" else parameters
    if config["model_type"] == "smollm3":  # its default, and defaults were left out
        del config["tie_word_embeddings"]
    path.write_text(json.dumps(config, indent=2) + "\n")


def as_published(path: Path, changes: dict[str, Any]) -> None:
    """Rewrites config.json as a family has it that transformers knows by another name."""
    config = json.loads(path.read_text()) | changes
    path.write_text(
        json.dumps({key: each for key, each in config.items() if each is not None}, indent=2) + "\n"
    )


def is_fair(outputs: dict[str, np.ndarray[Any, Any]], gap: float) -> bool:
    """Says whether the greedy tokens are no near-ties, and not the same few over and over."""
    return gap >= SMALLEST_GAP and len(set(outputs["greedy"].tolist())) >= GREEDY_LENGTH // 4


def write_case(
    directory: Path, model: Any, case: Case, outputs: dict[str, np.ndarray[Any, Any]]
) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    model.to(case.dtype).save_pretrained(directory, max_shard_size=case.largest_shard)
    (directory / "generation_config.json").unlink(missing_ok=True)
    if case.older_rope_keys:
        older_rope_keys(directory / "config.json")
    if case.published:
        as_published(directory / "config.json", case.published)
    np.savez_compressed(directory / "golden.npz", **outputs)


def make_case(name: str, case: Case) -> None:
    for seed in range(case.first_seed, case.first_seed + 1000):
        model = random_model(case, seed)
        outputs, gap = golden_outputs(model, seed)
        if is_fair(outputs, gap):
            break
    else:
        raise SystemExit(f"{name}: no seed keeps the best logits apart from the second")
    write_case(GOLDEN / name, model, case, outputs)
    num_tokens = len(set(outputs["greedy"].tolist()))
    print(f"{name}: seed {seed}, smallest gap {gap:.3f} deviations, {num_tokens} different tokens")


def rounded(frequencies: torch.Tensor) -> list[float]:
    return [float(f"{value:.9g}") for value in frequencies.tolist()]


def make_rope_cases() -> None:
    made = []
    for settings in ROPE_CASES:
        config = AutoConfig.for_model(
            **{**BASE, "model_type": "llama", "num_hidden_layers": 1, **settings}
        )
        rotary = AutoModelForCausalLM.from_config(config).model.rotary_emb
        scaling = float(f"{float(rotary.attention_scaling):.9g}")
        case = {
            "config": settings,
            "inverse_frequencies": rounded(rotary.inv_freq),
            "attention_scaling": scaling,
        }
        if rotary.rope_type == "longrope":
            beyond = config.rope_parameters["original_max_position_embeddings"] + 1
            case["long_inverse_frequencies"] = rounded(
                ROPE_INIT_FUNCTIONS["longrope"](config, "cpu", beyond)[0]
            )
        made.append(case)
    (GOLDEN / "rope.json").write_text(json.dumps(made, indent=1) + "\n")


def all_cases() -> dict[str, Case]:
    modules = (
        importlib.import_module(f"{cases.__name__}.{module.name}")
        for module in pkgutil.iter_modules(cases.__path__)
    )
    return {name: case for module in modules for name, case in module.CASES.items()}


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    known = all_cases()
    for name in sys.argv[1:] or known:
        make_case(name, known[name])
    make_rope_cases()


if __name__ == "__main__":
    main()
