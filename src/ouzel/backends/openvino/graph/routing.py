"""A router chooses the experts of each token, and the weights of their results.

Formulas: transformers, the `...TopkRouter` of each family. Scores are computed in float32 in every
precision, since the chosen experts change if two scores are closer than their rounding. The rows
themselves have the model's precision: in bf16 they may still choose another expert than in float32.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.nodes import Node, integers, part, real, scaled
from ouzel.backends.openvino.graph.precision import keep_float32
from ouzel.backends.openvino.library import ops, ops1
from ouzel.checkpoint.hf_config import HfConfig
from ouzel.errors import ModelLoadError


@dataclass(frozen=True, kw_only=True)
class Routing:
    """The rule by which scores choose experts and become their weights."""

    num_experts: int
    num_chosen: int
    scores: Literal["softmax", "sigmoid", "softmax_of_chosen", "sparse_mixer"] = "softmax"
    jitter: float = 0.0  # the sparse mixer ignores experts further than this from the best one
    has_bias: bool = False
    num_groups: int = 1  # groups of neighbouring experts
    num_chosen_groups: int = 1  # groups whose experts may be chosen
    num_group_scores: int = 1  # a group's score is the sum of this many of its best scores
    is_normalised: bool = False  # the chosen scores are divided by their sum
    added_to_sum: float = 0.0  # added to the sum that divides the scores
    smallest_sum: float = 0.0  # lower limit of that sum
    factor: float = 1.0

    def __post_init__(self) -> None:
        if not self.num_chosen <= self.num_experts // self.num_groups * self.num_chosen_groups:
            raise ModelLoadError(
                f"config.json: {self.num_chosen} experts of {self.num_experts} cannot be chosen"
            )
        if self.num_experts % self.num_groups or self.num_chosen_groups > self.num_groups:
            raise ModelLoadError(
                f"config.json: {self.num_experts} experts cannot be in {self.num_groups} groups, "
                f"of which {self.num_chosen_groups} are chosen"
            )

    @classmethod
    def read(cls, config: HfConfig) -> "Routing":
        """Reads the keys that most families have."""
        return cls(
            num_experts=config.size(
                "num_local_experts" if config.has("num_local_experts") else "num_experts"
            ),
            num_chosen=config.size("num_experts_per_tok"),
            is_normalised=config.flag("norm_topk_prob", False),
        )


@dataclass(frozen=True)
class Choice:
    """The experts of each token, [T, num_chosen], and the weights of their results."""

    experts: Node
    weights: Node


def route(
    b: Builder,
    rows: Node,
    name: str,
    hidden_size: int,
    routing: Routing,
    *,
    correction: NDArray[np.float32] | None = None,
) -> Choice:
    """Computes the scores of rows [T, hidden_size], and chooses experts.

    A `correction`, [experts], is added to the scores for the choice only.
    """
    logits = b.linear(rows, name, hidden_size, routing.num_experts, width="f32")
    if routing.has_bias:
        bias = b.graph.array(b.array(name + ".bias", routing.num_experts))
        # The reshape keeps the plugin from fusing the addition, which would then lose its mark.
        apart = ops.reshape(logits, integers(-1, 1, routing.num_experts), False)
        logits = ops.reshape(ops.add(apart, bias), integers(-1, routing.num_experts), False)
    choice = choose(logits, routing, None if correction is None else b.graph.array(correction))
    keep_float32([choice.experts, choice.weights], rows)
    return choice


def choose(logits: Node, routing: Routing, correction: Node | None) -> Choice:
    if routing.scores == "sparse_mixer":
        return mix_sparsely(logits, routing)
    if routing.scores == "softmax_of_chosen":
        chosen, experts = best(logits, routing.num_chosen)
        return Choice(experts, ops1.softmax(chosen, 1))
    scores = ops1.softmax(logits, 1) if routing.scores == "softmax" else ops.sigmoid(logits)
    compared = scores if correction is None else ops.add(scores, correction)
    chosen, experts = best(within_groups(compared, routing), routing.num_chosen)
    if correction is not None:
        chosen = ops.gather_elements(scores, experts, 1)
    weights = normalise(chosen, routing) if routing.is_normalised else chosen
    return Choice(experts, scaled(weights, routing.factor))


def mix_sparsely(logits: Node, routing: Routing) -> Choice:
    """Chooses experts one after the other, as Phi-3.5-MoE does.

    The weight of an expert is its share in the softmax over the experts that are left and near to
    it: twice the jitter is the largest distance, relative to the larger of both logits.
    """
    values, experts = best(logits, routing.num_chosen)
    numbers = ops.constant(np.arange(routing.num_experts, dtype=np.int32))
    weights = []
    is_left: Node = None
    for place in range(routing.num_chosen):
        largest = part(values, place, place + 1, 1)
        distances = ops.subtract(largest, logits)
        size = ops.maximum(ops.absolute(logits), largest)
        counts = ops.less_equal(distances, ops.multiply(size, real(2 * routing.jitter)))
        if is_left is not None:
            counts = ops.logical_and(counts, is_left)
        terms = ops.select(counts, ops.exp(ops.negative(distances)), real(0.0))
        weights.append(ops.divide(real(1.0), ops.reduce_sum(terms, integers(1), True)))
        is_other = ops.not_equal(numbers, part(experts, place, place + 1, 1))
        is_left = is_other if is_left is None else ops.logical_and(is_left, is_other)
    return Choice(experts, ops.concat(weights, 1))


def within_groups(scores: Node, routing: Routing) -> Node:
    """Excludes the experts of all groups but the best."""
    num_groups = routing.num_groups
    if num_groups == routing.num_chosen_groups:
        return scores
    groups = ops.reshape(scores, integers(0, num_groups, routing.num_experts // num_groups), True)
    group_scores = ops.reduce_sum(best(groups, routing.num_group_scores)[0], integers(-1), False)
    chosen = best(group_scores, routing.num_chosen_groups)[1]
    # [T, chosen, groups]
    one = ops.one_hot(chosen, ops.constant(np.int64(num_groups)), real(1.0), real(0.0), -1)
    is_chosen = ops.greater(ops.reduce_sum(one, integers(1), False), real(0.5))
    within = ops.select(ops.unsqueeze(is_chosen, integers(2)), groups, real(-1e30))
    return ops.reshape(within, integers(0, routing.num_experts), True)


def normalise(chosen: Node, routing: Routing) -> Node:
    total = ops.reduce_sum(chosen, integers(-1), True)
    if routing.added_to_sum:
        total = ops.add(total, real(routing.added_to_sum))
    if routing.smallest_sum:
        total = ops.maximum(total, real(routing.smallest_sum))
    return ops.divide(chosen, total)


def best(scores: Node, count: int) -> tuple[Node, Node]:
    """Returns the largest values of the last axis and their places, the largest first."""
    found = ops.topk(
        scores, ops.constant(np.int64(count)), -1, "max", "value", index_element_type="i32"
    )
    return found.output(0), found.output(1)
