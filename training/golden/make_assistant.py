"""Writes tests/backends/golden_assistant/: tiny random assistants of Gemma 4, which draft for checkpoints of golden/.

An assistant reads the model's keys and values, its last hidden row and its embedding of the newest token. See README.md.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

from training.golden import make_vision
from training.golden.cases import Case
from training.golden.make_golden import SMALLEST_GAP, best_token, fill
from training.golden.vision import IMAGE_TOKEN

TESTS = Path(__file__).parents[2] / "tests" / "backends"
GOLDEN = TESTS / "golden_assistant"
NUM_DRAFTS = 4
NUM_TRIES = 200
FULL, SLIDING = "full_attention", "sliding_attention"
SMALL: dict[str, Any] = {  # Any: as transformers has them
    "hidden_size": 64,
    "intermediate_size": 96,
    "vocab_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "layer_types": [SLIDING, SLIDING, FULL],
    "sliding_window": 12,
    "head_dim": 16,
    "global_head_dim": 32,
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 0,
    "tie_word_embeddings": True,
}
# Products of queries and keys are not scaled: trained norms keep them small.
CALM = {"q_norm": 0.5}
CASES: dict[str, dict[str, Any]] = {  # settings of the assistant, by the name of its model
    "gemma4-shared": {
        "model_type": "gemma4_assistant",
        "backbone_hidden_size": 32,
        "use_ordered_embeddings": True,
        "num_centroids": 16,
        "centroid_intermediate_top_k": 5,
        "text_config": {**SMALL, "model_type": "gemma4_text", "num_key_value_heads": 1},
    },
    "gemma4-unified": {
        "model_type": "gemma4_unified_assistant",
        "backbone_hidden_size": 32,
        "text_config": {
            **{key: value for key, value in SMALL.items() if not key.endswith("layer_input")},
            "model_type": "gemma4_unified_text",
            "num_key_value_heads": 2,
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 1,
            "attention_bias": True,
        },
    },
    "gemma4": {
        "model_type": "gemma4_assistant",
        "backbone_hidden_size": 64,
        "text_config": {
            **SMALL,
            "model_type": "gemma4_text",
            "hidden_size": 32,
            "sliding_window": 16,
            "num_key_value_heads": 2,
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 1,
        },
    },
}
SEEING = ("gemma4",)  # of golden_vision/: their prompts have a picture


def random_assistant(settings: dict[str, Any], seed: int) -> Any:
    config = AutoConfig.for_model(**settings)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    fill(model, Case(settings, factors=CALM), seed)
    if config.use_ordered_embeddings:
        order = np.random.default_rng(seed).permutation(config.get_text_config().vocab_size)
        model.masked_embedding.token_ordering.copy_(torch.tensor(order))
    return model


def read_model(name: str) -> tuple[Any, dict[str, Any], int]:
    """Returns the model, the inputs of its prompt, and the next token."""
    is_seeing = name in SEEING
    directory = TESTS / ("golden_vision" if is_seeing else "golden") / name
    kind = AutoModelForImageTextToText if is_seeing else AutoModelForCausalLM
    model = kind.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").eval()
    for key, buffer in model.named_buffers():
        if key.endswith("embed_scale"):  # it has the type of the weights
            buffer.copy_(buffer.to(torch.bfloat16).float())
    ending = ".1" if is_seeing else ""
    with np.load(directory / "golden.npz") as golden:
        prompt, next_token = golden["prompt" + ending], int(golden["greedy" + ending][0])
    inputs: dict[str, Any] = {"input_ids": torch.tensor(prompt[None])}
    if is_seeing:
        case = make_vision.all_cases()[name]
        pixels = make_vision.normalised(make_vision.picture(case.pictures[0], 0))
        inputs |= case.inputs([pixels], [case.size(0)])
        inputs[case.types_name] = (inputs["input_ids"] == IMAGE_TOKEN).long()
    return model, inputs, next_token


def draft(
    model: Any, assistant: Any, inputs: dict[str, Any], next_token: int
) -> dict[str, Any] | None:
    """Drafts as transformers' SinglePositionMultiTokenCandidateGenerator does. Returns None for near-ties."""
    embedding = model.get_input_embeddings()
    with torch.no_grad():
        outputs = model(
            **inputs,
            use_cache=False,
            output_hidden_states=True,
            return_shared_kv_states=True,
        )
        hidden = model_hidden = outputs.hidden_states[-1]
        hidden, token = hidden[:, -1:], torch.tensor([[next_token]])
        logits, rows, drafts = [], [], []
        for _ in range(NUM_DRAFTS):
            result = assistant(
                inputs_embeds=torch.cat([embedding(token), hidden], dim=-1),
                position_ids=torch.tensor([[inputs["input_ids"].shape[1]]]),
                attention_mask=None,
                shared_kv_states=outputs.shared_kv_states,
                use_cache=False,
            )
            hidden = result.last_hidden_state
            best, gap = best_token(result.logits[0, 0])
            if gap < SMALLEST_GAP:
                return None
            logits.append(result.logits[0, 0].numpy())
            rows.append(hidden[0, 0].numpy())
            drafts.append(best)
            token = torch.tensor([[best]])
    if len(set(drafts)) < NUM_DRAFTS:
        return None
    return {
        "hidden": model_hidden[0].numpy().astype(np.float32),
        "chained_logits": np.stack(logits).astype(np.float32),
        "chained_hidden": np.stack(rows).astype(np.float32),
        "drafts": np.array(drafts, np.int64),
    }


def make_case(name: str, settings: dict[str, Any]) -> None:
    model, inputs, next_token = read_model(name)
    for seed in range(NUM_TRIES):
        assistant = random_assistant(settings, seed)
        arrays = draft(model, assistant, inputs, next_token)
        if arrays is not None:
            break
    else:
        raise SystemExit(f"{name}: no seed keeps the best logits apart from the second")
    directory = GOLDEN / name
    shutil.rmtree(directory, ignore_errors=True)
    assistant.to(torch.bfloat16).save_pretrained(directory)
    (directory / "generation_config.json").unlink(missing_ok=True)
    np.savez_compressed(directory / "golden.npz", **arrays)
    print(f"{name}: seed {seed}, drafts {arrays['drafts']}")


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or CASES:
        make_case(name, CASES[name])


if __name__ == "__main__":
    main()
