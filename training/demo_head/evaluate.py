"""How many of the head's drafted tokens the demo model accepts in its greedy answers to held-out conversations.

python -m training.demo_head.evaluate --samples 20 --json /path/of/report.json
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from training.demo_head.model import DraftHead, HeadConfig, Unrolling, read_target
from training.demo_head.train import HEAD_DIRECTORY
from training.demo_model.conversations import MODEL_DIRECTORY
from training.demo_model.evaluate import Answerer
from training.demo_model.judging import ROWS, skill_conversations

MOST_TOKENS = 400


@dataclass
class Counts:
    """What happened to drafts: `reached[k]` had k accepted tokens and one more to judge, `accepted[k]` that one too."""

    reached: list[int] = field(default_factory=lambda: [0] * 16)
    accepted: list[int] = field(default_factory=lambda: [0] * 16)
    rounds: int = 0

    def add(self, length: int, limit: int) -> None:
        """Count a draft with `length` accepted tokens out of `limit` that could be."""
        self.rounds += 1
        for depth in range(min(length + 1, limit)):
            self.reached[depth] += 1
            self.accepted[depth] += depth < length

    def join(self, other: Counts) -> None:
        """Take in the counts of another."""
        self.rounds += other.rounds
        self.reached = [sum(pair) for pair in zip(self.reached, other.reached, strict=True)]
        self.accepted = [sum(pair) for pair in zip(self.accepted, other.accepted, strict=True)]

    def report(self, depths: int) -> dict[str, Any]:
        """Rates per depth, each among the drafts that reached it, and the mean number of accepted tokens."""
        rates = [
            round(self.accepted[depth] / max(1, self.reached[depth]), 4) for depth in range(depths)
        ]
        mean = sum(self.accepted) / max(1, self.rounds)
        return {"rounds": self.rounds, "rates": rates, "mean_accepted": round(mean, 3)}


def load_head(directory: Path) -> DraftHead:
    """The exported head in float32."""
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    known = {item.name for item in fields(HeadConfig)}
    sizes = {key: value for key, value in config.items() if key in known}
    sizes["layer_ids"] = tuple(config["eagle_aux_hidden_state_layer_ids"])
    stored = load_file(str(directory / "model.safetensors"))
    head = DraftHead(HeadConfig(**sizes), torch.arange(sizes["draft_vocab_size"]))
    head.load_state_dict(stored)
    return head.float().eval()


@torch.inference_mode()
def greedy_answer(answerer: Answerer, prompt_ids: list[int], most: int) -> list[int]:
    """The target's own tokens after a prompt, with the end of the answer."""
    pending, caches, answer = prompt_ids, None, []
    while len(answer) < most and (not answer or answer[-1] not in answerer.ends):
        hidden, caches = answerer.model.hidden_states(torch.tensor([pending]), caches)
        pending = [int(answerer.model.logits(hidden[:, -1]).argmax())]
        answer += pending
    return answer


@torch.inference_mode()
def drafts(answerer: Answerer, head: DraftHead, token_ids: Tensor, rows: Tensor, n: int) -> Tensor:
    """The `n` tokens that the head drafts after token t + 1, for each row t of one sequence."""
    target = answerer.model
    streams, _ = read_target(target, token_ids, head.config.layer_ids)
    embeddings = target.model.embed_tokens(token_ids)
    unrolling = Unrolling(head, streams, embeddings.roll(-1, 1), rows, n)
    hidden = unrolling.first()
    drafted = [head.target_ids(head.logits(hidden).argmax(-1))]
    while len(drafted) < n:
        hidden = unrolling.later(target.model.embed_tokens(drafted[-1]), hidden)
        drafted.append(head.target_ids(head.logits(hidden).argmax(-1)))
    return torch.stack(drafted, -1)[0]


def judge(
    answerer: Answerer, head: DraftHead, prompt_ids: list[int], answer: list[int], n: int
) -> tuple[Counts, Counts]:
    """Counts of the drafts that a server would make one after the other, and of drafts from every position."""
    token_ids = prompt_ids + answer
    first, last = len(prompt_ids) - 1, len(token_ids) - 1
    served, everywhere = Counts(), Counts()
    if last < first + 2:
        return served, everywhere
    rows = torch.arange(first, last - 1)
    drafted = drafts(answerer, head, torch.tensor([token_ids]), rows[None], n).tolist()
    lengths = {}
    for row, draft in zip(rows.tolist(), drafted, strict=True):
        wanted = token_ids[row + 2 : row + 2 + n]
        lengths[row] = next(
            (
                depth
                for depth, pair in enumerate(zip(draft, wanted, strict=False))
                if len({*pair}) > 1
            ),
            len(wanted),
        )
        everywhere.add(lengths[row], len(wanted))
    row = first
    while row in lengths:
        served.add(lengths[row], min(n, last - row - 1))
        row += lengths[row] + 1
    return served, everywhere


def main() -> None:
    """Evaluate, print a table, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--head", type=Path, default=HEAD_DIRECTORY)
    parser.add_argument("--samples", type=int, default=20, help="conversations of each kind")
    parser.add_argument("--drafts", type=int, default=5, help="tokens of a draft")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    answerer, head = Answerer(MODEL_DIRECTORY), load_head(options.head)
    total, total_everywhere, report = Counts(), Counts(), []
    for skill, thinking in ROWS:
        counts = Counts()
        for item in skill_conversations(skill, thinking, options.samples, held_out=True):
            prompt = answerer.renderer.prompt(item)
            prompt_ids = answerer.tokenizer.encode(prompt, add_special_tokens=False).ids
            answer = greedy_answer(answerer, prompt_ids, MOST_TOKENS)
            served, everywhere = judge(answerer, head, prompt_ids, answer, options.drafts)
            counts.join(served)
            total_everywhere.join(everywhere)
        total.join(counts)
        name = f"{skill}{' (thinking)' if thinking else ''}"
        report.append({"kind": name, **counts.report(options.drafts)})
        show(report[-1])
    report.append({"kind": "all", **total.report(options.drafts)})
    show(report[-1])
    report.append({"kind": "every position", **total_everywhere.report(options.drafts)})
    show(report[-1])
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def show(row: dict[str, Any]) -> None:
    """Print a row of the table."""
    rates = " ".join(f"{rate:6.1%}" for rate in row["rates"])
    print(f"{row['kind']:24} {rates}  {row['mean_accepted']:.2f} of {row['rounds']}", flush=True)


if __name__ == "__main__":
    main()
