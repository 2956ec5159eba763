"""The model families share these pieces of graphs, made of OpenVINO opset calls.

They are written so that the CPU plugin recognises them: RMSNorm -> RMS, rotate-half RoPE -> RoPE (its concat axes must
be -1), Convert-Subtract-Multiply on constants -> compressed weights of FullyConnected and Gather.
Activations are [T, ...]: all scheduled tokens of all sequences, one after the other, without a batch axis.
"""

from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.library import op, ops, ov
from ouzel.backends.openvino.weights.source import Matrix

Node = Any  # an openvino node or output; the package's type stubs do not cover the opsets


class PagedGraph:
    """It holds a graph under construction: its inputs, and the arrays that its constants point into."""

    def __init__(self, head_dim: int) -> None:
        self.parameters: list[Node] = []
        self.arrays: list[NDArray[np.generic]] = []  # must outlive the compiled model
        self.head_dim = head_dim
        self.token_ids = self.input("input_ids", [-1], ov.Type.i64)
        cos = self.input("rope_cos", [-1, head_dim // 2], ov.Type.f32)
        sin = self.input("rope_sin", [-1, head_dim // 2], ov.Type.f32)
        self._cos, self._sin = (ops.unsqueeze(ops.concat([half, half], -1), integers([1])) for half in (cos, sin))
        self._sampled_rows = self.input("sampled_rows", [-1], ov.Type.i64)
        self._paging = [
            self.input(name, [-1], ov.Type.i32)
            for name in ("past_lens", "subsequence_begins", "block_indices", "block_indices_begins")
        ]
        self._max_context_len = self.input("max_context_len", [], ov.Type.i32)
        self._num_attentions = 0

    def input(self, name: str, shape: list[int], dtype: ov.Type) -> Node:
        parameter = ops.parameter(shape, dtype)
        parameter.output(0).set_names({name})
        parameter.set_friendly_name(name)
        self.parameters.append(parameter)
        return parameter

    def constant(self, array: NDArray[np.generic], shape: tuple[int, ...], dtype: ov.Type) -> Node:
        """Points into the array; nothing is copied."""
        self.arrays.append(array)
        return op.Constant(ov.Tensor(array, ov.Shape(shape), dtype), shared_memory=True)

    def vector(self, values: NDArray[np.float32]) -> Node:
        return self.constant(values, values.shape, ov.Type.f32)

    def matrix(self, matrix: Matrix) -> Node:
        """Returns [rows, columns] in f32, as an expression that the plugin keeps compressed."""
        shape = (matrix.rows, matrix.columns)
        values, scales = matrix.parts["values"], matrix.parts.get("scales")
        match matrix.encoding:
            case "f32":
                return self.constant(values, shape, ov.Type.f32)
            case "bf16":
                widened = ops.convert(self.constant(values, shape, ov.Type.bf16), "f32")
                widened.get_rt_info()["decompression_0"] = (
                    ""  # else it is folded to f32 first, at three times the memory
                )
                return widened
            case "int8":
                assert scales is not None
                zeros = self.constant(matrix.parts["zeros"], (matrix.rows, 1), ov.Type.u8)
                levels = ops.convert(self.constant(values, shape, ov.Type.u8), "f32")
                centred = ops.subtract(levels, ops.convert(zeros, "f32"))
                return ops.multiply(centred, self.constant(scales, (matrix.rows, 1), ov.Type.f32))
            case "int4":
                assert scales is not None
                num_groups = scales.shape[1]
                grouped = (matrix.rows, num_groups, matrix.columns // num_groups)
                levels = ops.convert(self.constant(values, grouped, ov.Type.i4), "f16")
                scaled = ops.multiply(levels, self.constant(scales, (matrix.rows, num_groups, 1), ov.Type.f16))
                return ops.convert(ops.reshape(scaled, integers(shape), False), "f32")
            case _:
                assert_never(matrix.encoding)

    def linear(self, rows: Node, weight: Node, bias: NDArray[np.float32] | None = None) -> Node:
        product = ops.matmul(rows, weight, False, True)
        return product if bias is None else ops.add(product, self.vector(bias))

    def rms_norm(self, rows: Node, weight: NDArray[np.float32], epsilon: float) -> Node:
        mean_square = ops.reduce_mean(ops.power(rows, real(2.0)), integers([-1]), True)
        inverse = ops.divide(real(1.0), ops.sqrt(ops.add(mean_square, real(epsilon))))
        return ops.multiply(ops.multiply(rows, inverse), self.vector(weight))

    def heads(self, rows: Node, num_heads: int) -> Node:
        return ops.reshape(rows, integers([-1, num_heads, self.head_dim]), False)

    def rotate(self, heads: Node) -> Node:
        """Applies RoPE to [T, heads, head_dim] in the rotate-half layout."""
        half, axis = self.head_dim // 2, integers([2])
        first = ops.slice(heads, integers([0]), integers([half]), integers([1]), axis)
        second = ops.slice(heads, integers([half]), integers([2**31 - 1]), integers([1]), axis)
        rotated = ops.concat([ops.multiply(second, real(-1.0)), first], -1)
        return ops.add(ops.multiply(heads, self._cos), ops.multiply(rotated, self._sin))

    def attention(self, query: Node, key: Node, value: Node, num_kv_heads: int, sliding_window: int = 0) -> Node:
        """Takes queries, keys and values as rows [T, heads * head_dim]; returns [T, query heads * head_dim].

        A token sees `sliding_window` tokens, itself included; 0 stands for all.
        """
        flat = [ops.reshape(rows, integers([0, -1]), True) for rows in (query, key)]
        layer = self._num_attentions
        self._num_attentions += 1
        caches = [self.input(f"{kind}_cache.{layer}", [-1] * 4, ov.Type.dynamic) for kind in ("key", "value")]
        arguments = [
            *flat,
            value,
            *caches,
            *self._paging,
            real(self.head_dim**-0.5),
            int32(sliding_window),
            empty(np.float32),  # ALiBi slopes
            self._max_context_len,
            empty(np.int32),  # score aggregation windows
            empty(np.int32),  # cache rotation: block indices
            empty(np.int32),  # and deltas
            empty(np.float32),  # and table
            empty(np.float32),  # XAttention: threshold
            int32(0),  # and block size
            int32(0),  # and stride
            empty(np.float32, 4),  # attention sinks
            int32(0),  # adaptive R-KV: start size
            empty(np.int32),  # and evictable sizes
            empty(np.int32),  # and block indices
            empty(np.int32),  # and their begins
            empty(np.int32),  # token type ids
            empty(np.uint8),  # query-query bias
            empty(np.int32),  # and its begins
        ]
        node = op._PagedAttentionExtension([argument.output(0) for argument in arguments])
        for kind in ("k", "v"):
            node.get_rt_info()[f"num_{kind}_heads"] = num_kv_heads
            node.get_rt_info()[f"{kind}_head_size"] = self.head_dim
        return node.output(0)

    def sampled(self, rows: Node) -> Node:
        """Gathers the rows whose logits are wanted, before the largest matrix of the model."""
        return ops.gather(rows, self._sampled_rows, ops.constant(np.int64(0)))

    def finish(self, logits: Node) -> ov.Model:
        result = ops.result(logits)
        result.output(0).set_names({"logits"})
        return ov.Model([result], self.parameters, "ouzel")


def integers(values: list[int] | tuple[int, ...]) -> Node:
    return ops.constant(np.array(values, np.int64))


def int32(value: int) -> Node:
    return ops.constant(np.int32(value))


def real(value: float) -> Node:
    return ops.constant(np.float32(value))


def empty(dtype: type[np.generic], rank: int = 1) -> Node:
    return ops.constant(np.zeros([0] * rank, dtype))
