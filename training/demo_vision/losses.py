"""What is learned of a batch: the answers, and what each token of a picture shows."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from training.demo_vision.batches import Batch
from training.demo_vision.conversations import SKILLS
from training.demo_vision.labels import BACKGROUND, NUM_CLASSES, PLACE
from training.demo_vision.model import Qwen3Vl

NOTHING_WEIGHT = 0.1  # of a token that shows nothing: most do


class LabelHeads(nn.Module):
    """Read what a token shows from its features; they teach the encoder and are not kept."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(size, count) for count in NUM_CLASSES)

    def forward(self, features: Tensor, labels: Tensor) -> Tensor:
        total = torch.zeros(())
        for number, (head, count) in enumerate(zip(self.heads, NUM_CLASSES, strict=True)):
            weights = torch.ones(count)
            if number not in (BACKGROUND, PLACE):
                weights[0] = NOTHING_WEIGHT
            total = total + functional.cross_entropy(
                head(features).float(), labels[:, number], weights
            )
        return total


@dataclass(frozen=True, slots=True)
class Scores:
    """The learned tokens of a batch."""

    losses: Tensor  # [tokens]
    are_right: Tensor  # [tokens]: the most likely token is the learned one
    parts: Tensor  # [tokens]


def scores_of(model: Qwen3Vl, batch: Batch, features: Tensor) -> Scores:
    hidden = model.hidden_states(
        batch.token_ids, batch.positions, features, batch.cells, batch.parts
    )
    learned = torch.nonzero(batch.learned)[:, 0]  # each has a token of its own part before it
    logits = model.logits(hidden[learned - 1]).float()
    wanted = batch.token_ids[learned]
    losses = functional.cross_entropy(logits, wanted, reduction="none")
    return Scores(losses, logits.argmax(-1) == wanted, batch.part_of_token[learned])


class Tally:
    """Counts the conversations of each skill whose answers are right to the last token."""

    def __init__(self) -> None:
        self.num_right = np.zeros(len(SKILLS), np.int64)
        self.num = np.zeros(len(SKILLS), np.int64)
        self.losses: list[float] = []

    def add(self, batch: Batch, scores: Scores) -> None:
        wrong = (
            np.bincount(scores.parts[~scores.are_right].numpy(), minlength=len(batch.skill_of_part))
            > 0
        )
        for part in np.unique(scores.parts.numpy()):
            self.num[batch.skill_of_part[part]] += 1
            self.num_right[batch.skill_of_part[part]] += not wrong[part]
        self.losses.append(float(scores.losses.mean()))

    def shares(self) -> dict[str, float]:
        return {
            skill: round(float(right / number), 3)
            for skill, right, number in zip(SKILLS, self.num_right, self.num, strict=True)
            if number
        }
