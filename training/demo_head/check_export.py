"""Drafts with the exported head in numpy, token by token with a plain cache as a server does, and compares with torch."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from training.demo_head.evaluate import drafts, greedy_answer, load_head
from training.demo_head.model import HeadConfig, read_target
from training.demo_head.train import HEAD_DIRECTORY
from training.demo_model.check_export import normalised
from training.demo_model.conversations import MODEL_DIRECTORY
from training.demo_model.evaluate import Answerer
from training.demo_model.judging import skill_conversations

DRAFTS = 7


class PlainHead:
    """The head with a cache of keys and values, one entry for each token."""

    def __init__(self, directory: Path, config: HeadConfig) -> None:
        stored = load_file(str(directory / "model.safetensors"))
        self.weights = {
            name: value.float().numpy() if value.is_floating_point() else value.numpy()
            for name, value in stored.items()
        }
        self.config = config
        self.keys: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def norm(self, hidden: np.ndarray, name: str) -> np.ndarray:
        """RMS norm with the scale of a name."""
        return normalised(hidden, self.weights[f"{name}.weight"], self.config.rms_norm_eps)

    def project(self, hidden: np.ndarray, name: str) -> np.ndarray:
        """Product with a matrix of the layer."""
        return self.weights[f"midlayer.{name}_proj.weight"] @ hidden

    def rotated(self, vector: np.ndarray) -> np.ndarray:
        """The heads of a query or key, rotated for the position of the next entry."""
        size = self.config.head_dim
        heads = vector.reshape(-1, size)
        angles = len(self.keys) * self.config.rope_theta ** (-np.arange(0, size, 2) / size)
        first, second = heads[:, : size // 2], heads[:, size // 2 :]
        cosine, sine = np.cos(angles), np.sin(angles)
        return np.concatenate((first * cosine - second * sine, second * cosine + first * sine), -1)

    def feed(self, embedding: np.ndarray, feature: np.ndarray) -> np.ndarray:
        """The layer's output for one more entry."""
        parts = (
            self.norm(embedding, "midlayer.input_layernorm"),
            self.norm(feature, "midlayer.hidden_norm"),
        )
        inputs = np.concatenate(parts)
        query = self.rotated(self.project(inputs, "self_attn.q"))
        key = self.rotated(self.project(inputs, "self_attn.k"))
        self.keys.append(key)
        self.values.append(self.project(inputs, "self_attn.v").reshape(key.shape))
        groups = len(query) // len(key)
        keys, values = (np.repeat(np.stack(part), groups, 1) for part in (self.keys, self.values))
        scores = np.einsum("hd,lhd->hl", query, keys) / self.config.head_dim**0.5
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = np.einsum("hl,lhd->hd", shares, values).ravel()
        hidden = feature + self.project(mixed, "self_attn.o")
        inner = self.norm(hidden, "midlayer.post_attention_layernorm")
        gate = self.project(inner, "mlp.gate")
        return hidden + self.project(
            gate / (1 + np.exp(-gate)) * self.project(inner, "mlp.up"), "mlp.down"
        )

    def best(self, hidden: np.ndarray) -> int:
        """The target's id of the token that the head finds most probable."""
        draft_id = int((self.weights["lm_head.weight"] @ self.norm(hidden, "norm")).argmax())
        return draft_id + int(self.weights["d2t"][draft_id])


def plain_drafts(
    plain: PlainHead, streams: np.ndarray, embeddings: np.ndarray, token_ids: list[int], first: int
) -> list[list[int]]:
    """The drafts from position `first` on."""
    drafted = []
    for row in range(len(token_ids) - 2):
        feature = plain.weights["fc.weight"] @ streams[row]
        hidden = plain.feed(embeddings[token_ids[row + 1]], feature)
        if row < first:
            continue
        draft, depth = [plain.best(hidden)], len(plain.keys)
        while len(draft) < DRAFTS:
            hidden = plain.feed(embeddings[draft[-1]], hidden)
            draft.append(plain.best(hidden))
        del plain.keys[depth:], plain.values[depth:]
        drafted.append(draft)
    return drafted


def main() -> None:
    """Compare the drafts of some conversations."""
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--head", type=Path, default=HEAD_DIRECTORY)
    options = parser.parse_args()
    answerer, head = Answerer(MODEL_DIRECTORY), load_head(options.head)
    embeddings = answerer.model.model.embed_tokens.weight.detach().numpy()
    same = total = 0
    for skill in ("small talk", "extraction", "tool call", "counting"):
        for item in skill_conversations(skill, False, 2, held_out=True):
            prompt = answerer.renderer.prompt(item)
            prompt_ids = answerer.tokenizer.encode(prompt, add_special_tokens=False).ids
            token_ids = prompt_ids + greedy_answer(answerer, prompt_ids, 60)
            first, tensor = len(prompt_ids) - 1, torch.tensor([token_ids])
            rows = torch.arange(first, len(token_ids) - 2)
            expected = drafts(answerer, head, tensor, rows[None], DRAFTS)
            with torch.inference_mode():
                streams, _ = read_target(answerer.model, tensor, head.config.layer_ids)
            plain = PlainHead(options.head, head.config)
            found = plain_drafts(plain, streams[0].numpy(), embeddings, token_ids, first)
            same += int((torch.tensor(found) == expected).sum())
            total += expected.numel()
    print(f"{same} of {total} drafted tokens are the same")
    if same < total:
        raise SystemExit("the two computations differ")


if __name__ == "__main__":
    main()
