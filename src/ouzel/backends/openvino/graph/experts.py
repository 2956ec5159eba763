"""Builds mixtures of experts: a few of many feed-forward layers compute each token.

    y[t] = sum over the chosen experts e of weight[t, e] * down_e(unit(gate_e(x[t]), up_e(x[t])))

Experts without a gate compute down_e(activation(up_e(x[t]))).

If the matrices are packed for Ouzel's own kernels, one operation computes all of this
(docs/decisions/0057-own-experts.md). Operations of the runtime compute other experts:

A row is a token for one of its experts. Rows are sorted by expert, so that the rows of an expert
lie together. Two forms of their products compute the same:

- sliced: a product for each expert with its slice of the rows; an expert without rows is skipped
- grouped: one product for all, GroupedMatMul, which becomes the plugin's GatherMatmul

The plugin packs the weights of a slice's product when it has rows for the first time: int4 takes 10
ms an expert or more. If all experts are equally likely, the self-check's 40 tokens make it pack 99
of 100 experts at start-up with 8 of 64 chosen, and 92 of 100 with 8 of 128. The first request that
needs the others packs them.
"""

from dataclasses import dataclass, replace

import numpy as np

from ouzel.backends.openvino.graph.activations import GatedUnit, Unit, read_activation
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.graph.constants import ExpertsMatrix
from ouzel.backends.openvino.graph.decoder import Part
from ouzel.backends.openvino.graph.nodes import Node, int32, integers, split
from ouzel.backends.openvino.graph.routing import Choice, Routing, route
from ouzel.backends.openvino.kernels.gates import Gate
from ouzel.backends.openvino.library import ops, ops17
from ouzel.backends.openvino.weights.cells import BLOCK_ROWS
from ouzel.backends.openvino.weights.source import MatrixSpec, Tensor
from ouzel.checkpoint.hf_config import HfConfig

# Measured with AMX (decision 0016): for 256 tokens a grouped product takes 10 to 25 times the time
# of slices, for 8 tokens 1.3 to 2 times. Slices cost nodes: for one token slices take 1.0 times the
# time of a grouped product with 64 experts, 1.8 times with 128 and 4 times with 256; with 128
# experts each layer takes 1.5 s to compile. Without AMX a grouped product of 256 tokens takes 4
# times the time of slices.
MAX_SLICED_EXPERTS = 128


@dataclass(frozen=True, kw_only=True)
class ExpertTensors:
    """The experts' tensors in a checkpoint, without the prefix of the layer.

    There is a tensor for each expert and matrix, `experts.<number>.<name>.weight`, or one tensor
    for all experts. In such a tensor up stands below gate, or their rows alternate.
    """

    gate: str = "gate_proj"  # empty: the experts have no gate
    up: str = "up_proj"
    down: str = "down_proj"
    all_gate_up: str = "experts.gate_up_proj"
    all_down: str = "experts.down_proj"
    # published checkpoints have separate tensors; joint ones are read, too
    are_separate: bool = True
    is_transposed: bool = False  # joint tensors are [experts, columns, rows]
    # joint tensors are all transposed or all not; the file tells by the shape of one
    may_be_transposed: bool = False
    is_alternating: bool = False


MIXTRAL_TENSORS = ExpertTensors(gate="w1", up="w3", down="w2")


@dataclass(frozen=True, kw_only=True)
class ExpertsShape:
    num_experts: int
    hidden_size: int
    inner_size: int
    unit: Unit
    tensors: ExpertTensors = ExpertTensors()
    has_bias: bool = False  # one bias for all experts, `_bias` after the name of their weights

    @classmethod
    def read(
        cls, config: HfConfig, num_experts: int, inner_size: str = "intermediate_size"
    ) -> "ExpertsShape":
        """Reads the keys that most families write the same way; `inner_size` is the key of the
        inner size.
        """
        return cls(
            num_experts=num_experts,
            hidden_size=config.size("hidden_size"),
            inner_size=config.size(inner_size),
            unit=GatedUnit(activation=read_activation(config)),
        )

    @property
    def gate(self) -> Gate | None:
        """Returns the unit for the kernels, None if they cannot compute these experts."""
        if not isinstance(self.unit, GatedUnit):
            return None
        fits = self.hidden_size % BLOCK_ROWS == 0 and self.inner_size % BLOCK_ROWS == 0
        return self.unit.kernel_gate if fits else None

    @property
    def row_order(self) -> tuple[int, ...] | None:
        """Returns the order that brings gate above up, None if they stand so already."""
        count = 2 * self.inner_size
        return (*range(0, count, 2), *range(1, count, 2)) if self.tensors.is_alternating else None


@dataclass(frozen=True)
class SortedRows:
    tokens: Node  # [rows]
    experts: Node  # [rows]
    counts: Node  # [experts], the number of their rows
    ends: Node  # [experts], the end of their rows
    places: Node  # [T, num_chosen], the row of each choice


def make_experts(
    routing: Routing,
    shape: ExpertsShape,
    *,
    place: str = "mlp",
    router: str = "gate",
    correction: str = "",
) -> Part:
    """Returns feed-forward layers of experts, whose tensors have `place` in their names.

    `correction` names a tensor, [experts], that is added to the scores for the choice only.
    """

    def part(b: Builder, rows: Node, layer: int) -> Node:
        prefix = f"model.layers.{layer}.{place}."
        added = b.array(prefix + correction, shape.num_experts) if correction else None
        choice = route(b, rows, prefix + router, shape.hidden_size, routing, correction=added)
        return mixture(b, rows, choice, prefix, shape)

    return part


def with_shared(chosen: Part, shared: Part) -> Part:
    """Adds the result of an expert that computes every token."""
    return lambda b, rows, layer: ops.add(chosen(b, rows, layer), shared(b, rows, layer))


def mixture(b: Builder, rows: Node, choice: Choice, prefix: str, shape: ExpertsShape) -> Node:
    """Computes the chosen experts; takes and returns [T, hidden_size]."""
    names, inner = shape.tensors, shape.inner_size
    into = (names.gate, names.up) if names.gate else (names.up,)
    num_into = len(into) * inner
    first_of_all = joint_tensor(prefix + names.all_gate_up, shape, (num_into, shape.hidden_size))
    down_of_all = joint_tensor(prefix + names.all_down, shape, (shape.hidden_size, inner))
    if names.may_be_transposed:
        witness = down_of_all if num_into == shape.hidden_size else first_of_all
        first_of_all, down_of_all = (
            replace(each, witness=witness) for each in (first_of_all, down_of_all)
        )
    first = make_spec(prefix, shape, into, first_of_all)
    second = make_spec(prefix, shape, (names.down,), down_of_all)
    matrices = [read_experts(b, spec, shape) for spec in (first, second)]
    if shape.gate is not None and all(each.matrix.encoding.is_packed for each in matrices):
        return b.graph.mixture(rows, (choice.experts, choice.weights), shape.gate, matrices)
    return mixture_of_products(b, rows, choice, shape, matrices)


def mixture_of_products(
    b: Builder, rows: Node, choice: Choice, shape: ExpertsShape, matrices: list[ExpertsMatrix]
) -> Node:
    """Computes the chosen experts with operations of the runtime."""
    order = sort_rows(choice.experts, shape.num_experts)
    sorted_tokens = ops.gather(rows, order.tokens, int32(0))
    first, down = matrices
    inner_rows = product(b, sorted_tokens, order, first)
    inner = shape.inner_size
    halves = split(inner_rows, inner, inner) if shape.tensors.gate else [inner_rows]
    results = product(b, shape.unit(*halves), order, down)
    of_choices = ops.gather(results, order.places, int32(0))  # [T, num_chosen, hidden_size]
    return ops.reduce_sum(
        ops.multiply(of_choices, ops.unsqueeze(choice.weights, integers(2))), integers(1), False
    )


def sort_rows(experts: Node, num_experts: int) -> SortedRows:
    """Sorts the choices, [T, num_chosen], by expert.

    It counts: a row's place is the number of choices that belong before it.
    """
    chosen = ops.reshape(experts, integers(-1), False)
    ones = ops.equal(
        ops.unsqueeze(chosen, integers(1)), ops.constant(np.arange(num_experts, dtype=np.int32))
    )
    ones = ops.convert(ones, "i32")  # [choices, experts]
    counts = ops.reduce_sum(ones, integers(0), False)
    ends = ops.cum_sum(counts, int32(0))
    # choices of the same expert before each choice, valid where `ones` has a one
    before = ops.subtract(ops.cum_sum(ones, int32(0)), int32(1))
    places = ops.add(before, ops.subtract(ends, counts))
    places = ops.reduce_sum(ops.multiply(ones, places), integers(1), False)
    choices = ops.range(
        int32(0), ops.squeeze(ops.shape_of(chosen, "i32"), integers(0)), int32(1), "i32"
    )
    order = ops.scatter_update(choices, places, choices, int32(0))  # the choice of each row
    num_chosen = ops.gather(ops.shape_of(experts, "i32"), int32(1), int32(0))
    return SortedRows(
        tokens=ops.divide(order, num_chosen),
        experts=ops.gather(chosen, order, int32(0)),
        counts=counts,
        ends=ends,
        places=ops.reshape(places, ops.shape_of(experts), False),
    )


def joint_tensor(name: str, shape: ExpertsShape, size: tuple[int, int]) -> Tensor:
    """Returns the tensor of all experts, with a matrix of this size for each."""
    is_transposed = shape.tensors.is_transposed
    return Tensor(
        name, (shape.num_experts, *(size[::-1] if is_transposed else size)), is_transposed
    )


def make_spec(
    prefix: str, shape: ExpertsShape, names: tuple[str, ...], whole: Tensor
) -> MatrixSpec:
    """Returns a matrix [rows, columns] of each expert, made of its tensors with these names.

    The tensors of an expert stand below each other. `whole` is the tensor of all experts.
    """
    num_experts, num_rows, columns = whole.shape
    if whole.is_transposed:
        num_rows, columns = columns, num_rows
    each = [
        Tensor(f"{prefix}experts.{expert}.{name}.weight", (num_rows // len(names), columns))
        for expert in range(num_experts)
        for name in names
    ]
    return MatrixSpec(
        tensors=tuple(each) if shape.tensors.are_separate else (whole,),
        shape=(num_experts, num_rows, columns),
        row_order=shape.row_order if len(names) > 1 else None,
        instead=whole if shape.tensors.are_separate else None,
        # Grouped products would unpack floats of four bits in every step.
        is_integer=num_experts > MAX_SLICED_EXPERTS,
        may_be_packed=shape.gate is not None,
    )


def read_experts(b: Builder, spec: MatrixSpec, shape: ExpertsShape) -> ExpertsMatrix:
    matrix = b.experts(spec)
    if not shape.has_bias:
        return ExpertsMatrix(matrix, None)
    num_experts, num_rows, _ = matrix.shape
    bias = b.array(spec.tensors[0].name + "_bias", num_experts, num_rows)
    return ExpertsMatrix(matrix, bias if spec.row_order is None else bias[:, list(spec.row_order)])


def product(b: Builder, rows: Node, order: SortedRows, experts: ExpertsMatrix) -> Node:
    """Multiplies each row by the transpose of its expert's matrix."""
    matrix, bias = experts.matrix, experts.bias
    if matrix.shape[0] > MAX_SLICED_EXPERTS and not matrix.encoding.is_packed:
        results = ops17.grouped_matmul(rows, b.graph.matrix(matrix), order.ends)
        if bias is None:
            return results
        return ops.add(results, ops.gather(b.graph.array(bias), order.experts, int32(0)))
    slices = ops.variadic_split(rows, int32(0), order.counts).outputs()
    results = [
        b.product(part, matrix.expert(e), None if bias is None else bias[e])
        for e, part in enumerate(slices)
    ]
    return ops.concat(results, 0)
