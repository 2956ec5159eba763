"""Writes tests/backends/golden_prediction/: tiny random checkpoints with layers that predict a further token.

Transformers leaves the tensors of these layers (`mtp.*`, or those of a layer behind the last one) out, so they are
assembled of its own modules here. An entry is one position of these layers: entry t has the model's state at position t
and the token at t + 1, and predicts the token at t + 2. See README.md.
"""

import copy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from transformers.masking_utils import create_causal_mask

from training.golden.cases import Case
from training.golden.make_golden import (
    SMALLEST_GAP,
    all_cases,
    best_token,
    fill,
    golden_outputs,
    is_fair,
    random_model,
    write_case,
)

GOLDEN = Path(__file__).parents[2] / "tests" / "backends" / "golden_prediction"
NUM_DRAFTS = 4
SEED_DISTANCE = 1_000_000  # from the model's own seed: its weights are other numbers
CONFIG_KEYS: dict[
    str, dict[str, Any]
] = {  # Any: what config.json has of the layers, by the name of a case
    "qwen3_5": {"mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False},
    "qwen3_5-moe": {"mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": False},
    "qwen3_next": {"num_nextn_predict_layers": 1},
    "deepseek-v3": {"num_nextn_predict_layers": 1},
    "glm4-moe": {"num_nextn_predict_layers": 1},
    "glm4-moe-lite": {"num_nextn_predict_layers": 1},
}
LIKE_DEEPSEEK = ("deepseek-v3", "glm4-moe", "glm4-moe-lite")
DEEPSEEK_NAMES = {  # behind `mtp.`, and behind `model.layers.N.`
    "fc.": "eh_proj.",
    "pre_fc_norm_embedding.": "enorm.",
    "pre_fc_norm_hidden.": "hnorm.",
    "layers.0.": "",
    "norm.": "shared_head.norm.",
}


class Prediction(torch.nn.Module):
    """Has the tensors under Qwen's names behind `mtp.`; `rename` makes DeepSeek's of them."""

    def __init__(self, decoder: Any) -> None:  # Any: transformers' models are untyped
        super().__init__()
        self.config = copy.deepcopy(decoder.config)
        self.config.num_hidden_layers = 1
        self.config.layer_types = ["full_attention"]
        self.config.mlp_only_layers = []  # Qwen3-Next: the layer has experts
        self.config.first_k_dense_replace = 0  # and so has DeepSeek's,
        self.config.mlp_layer_types = ["sparse"]  # and GLM's
        decoder_layer, norm = type(decoder.layers[0]), type(decoder.norm)
        size, epsilon = self.config.hidden_size, self.config.rms_norm_eps
        self.fc = torch.nn.Linear(2 * size, size, bias=False)
        self.pre_fc_norm_embedding = norm(size, eps=epsilon)
        self.pre_fc_norm_hidden = norm(size, eps=epsilon)
        self.layers = torch.nn.ModuleList([decoder_layer(self.config, 0)])
        self.norm = norm(size, eps=epsilon)

    def forward(
        self, decoder: Any, embedded: torch.Tensor, hidden: torch.Tensor, positions: torch.Tensor
    ) -> torch.Tensor:
        """Returns the states [1, entries, hidden size] behind the layers' own norm, which the model's head reads.

        `embedded` has what enters the model for the token at t + 1 of each entry t, and `hidden` the state at t, both
        [1, entries, hidden size]. `positions` are those of t: [1, entries], or [3, 1, entries].
        """
        normed = [self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(hidden)]
        entries = self.fc(torch.cat(normed, dim=-1))
        mask = create_causal_mask(
            config=self.config,
            inputs_embeds=entries,
            attention_mask=None,
            past_key_values=None,
            position_ids=torch.arange(entries.shape[1])[None],
        )
        rotary = decoder.rotary_emb(entries, positions)
        outputs = self.layers[0](
            entries,
            position_embeddings=rotary,
            attention_mask=mask,
            position_ids=positions,
            use_cache=False,
        )
        return self.norm(outputs)


def prediction_outputs(model: Any, outputs: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """Returns the further arrays of golden.npz, and the smallest gap of a draft in standard deviations."""
    prompt = outputs["prompt"].tolist()
    with torch.no_grad():
        rows = model.model.embed_tokens(torch.tensor([prompt]))
        positions = torch.arange(len(prompt))[None]
        return prediction_of(model, model.model, rows, positions, int(outputs["greedy"][0]))


def prediction_of(
    model: Any, decoder: Any, rows: torch.Tensor, positions: torch.Tensor, next_token: int
) -> tuple[dict[str, Any], float]:
    """Does so for a prompt that enters the decoder as these rows at these positions."""
    logits, drafts, smallest_gap = [], [], float("inf")
    with torch.no_grad():
        hidden = model_hidden = decoder(
            inputs_embeds=rows, position_ids=positions, use_cache=False
        ).last_hidden_state
        embedded = torch.cat([rows[:, 1:], decoder.embed_tokens(torch.tensor([[next_token]]))], 1)
        for _ in range(NUM_DRAFTS):
            states = model.mtp(decoder, embedded, hidden, positions)
            logits.append(model.lm_head(states[0]))
            draft, gap = best_token(logits[-1][-1])
            smallest_gap = min(smallest_gap, gap)
            drafts.append(draft)
            embedded = torch.cat([embedded, decoder.embed_tokens(torch.tensor([[draft]]))], 1)
            # the next entry has this one's state
            hidden = torch.cat([hidden, states[:, -1:]], dim=1)
            # and the position after the last one, which is text
            positions = torch.cat([positions, positions[..., -1:] + 1], dim=-1)
    arrays = {
        "hidden": model_hidden[0].numpy().astype(np.float32),
        "prediction_logits": logits[0].numpy().astype(np.float32),
        "chained_logits": np.stack([row[-1].numpy() for row in logits]).astype(np.float32),
        "drafts": np.array(drafts, np.int64),
    }
    return arrays, smallest_gap


def add_prediction(model: Any, decoder: Any, case: Case, seed: int) -> None:
    model.mtp = Prediction(decoder).float().eval()
    fill(model.mtp, case, seed + SEED_DISTANCE)


def rename(directory: Path, num_layers: int, prefix: str = "model.") -> None:
    """Calls the layer's tensors as DeepSeek does, and adds the copies of embedding and head that it has."""
    path, layer = directory / "model.safetensors", f"{prefix}layers.{num_layers}."
    tensors = load_file(path)
    for name in [name for name in tensors if name.startswith("mtp.")]:
        own = name.removeprefix("mtp.")
        stored, asked = next(each for each in DEEPSEEK_NAMES.items() if own.startswith(each[0]))
        tensors[layer + asked + own.removeprefix(stored)] = tensors.pop(name)
    tensors[layer + "embed_tokens.weight"] = tensors[f"{prefix}embed_tokens.weight"].clone()
    tensors[layer + "shared_head.head.weight"] = tensors["lm_head.weight"].clone()
    save_file(tensors, path, metadata={"format": "pt"})


def make_case(name: str, case: Case) -> None:
    for seed in range(case.first_seed, case.first_seed + 1000):
        model = random_model(case, seed)
        outputs, gap = golden_outputs(model, seed)
        if not is_fair(outputs, gap):
            continue
        add_prediction(model, model.model, case, seed)
        predicted, draft_gap = prediction_outputs(model, outputs)
        if draft_gap >= SMALLEST_GAP and len(set(predicted["drafts"].tolist())) == NUM_DRAFTS:
            break
    else:
        raise SystemExit(f"{name}: no seed keeps the best logits apart from the second")
    write_case(GOLDEN / name, model, case, outputs | predicted)
    if name in LIKE_DEEPSEEK:
        rename(GOLDEN / name, model.config.num_hidden_layers)
    print(
        f"{name}: seed {seed}, smallest gaps {gap:.3f} and {draft_gap:.3f} deviations, drafts {predicted['drafts']}"
    )


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or CONFIG_KEYS:
        case = all_cases()[name]
        make_case(name, replace(case, settings={**case.settings, **CONFIG_KEYS[name]}))


if __name__ == "__main__":
    main()
