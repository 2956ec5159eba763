"""What golden checkpoints are made of: a file for each kind of family, each with its CASES."""

from dataclasses import dataclass, field
from typing import Any

import torch

BASE: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 320,
    "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


def rope(rope_type: str = "default", theta: float = 10000.0, **fields: object) -> dict[str, object]:
    return {"rope_type": rope_type, "rope_theta": theta, **fields}


@dataclass(frozen=True)
class Case:
    """A checkpoint; its settings complete BASE."""

    settings: dict[str, Any]  # Any: as transformers has them
    dtype: torch.dtype = torch.bfloat16
    largest_shard: str = "1GB"
    older_rope_keys: bool = False  # config.json is written as transformers 4 wrote it
    published: dict[str, Any] = field(
        default_factory=dict
    )  # what config.json has instead; None takes a key away
    factors: dict[str, float] = field(default_factory=dict)  # of weights, by a part of their names
    # those below round more than the tests allow, as when two experts' scores nearly tie
    first_seed: int = 0
