"""Reads adapters in PEFT's format: a directory with a configuration and a file of tensors.

`adapter_config.json` describes the adapter. For each adapted matrix W [rows, columns], W x becomes
W x + scale * B (A x); matrix_changes.py has the formulas of DoRA. Biases, norms and rows of the
embedding may be replaced. Everything else that PEFT can write is refused by name: no part of an
adapter is left out silently.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.adapters.adapter_checks import check_completeness
from ouzel.backends.openvino.adapters.adapter_config import (
    read_config,
    values_by_pattern,
)
from ouzel.backends.openvino.adapters.adapter_tensors import AdapterTensors, Kind, find_parts
from ouzel.backends.openvino.adapters.matrix_changes import (
    EmbeddingChange,
    MatrixChange,
    MatrixTensors,
    compute_change,
    compute_embedding,
    differs,
)
from ouzel.backends.openvino.graph.adapter_shape import HEAD, AdapterShape
from ouzel.backends.openvino.weights.safetensors import read_chunks, to_float32
from ouzel.backends.openvino.weights.source import Matrix
from ouzel.backends.openvino.weights.tensor_location import TensorLocation
from ouzel.checkpoint.model_files import brief
from ouzel.checkpoint.weight_files import ADAPTER_CONFIG
from ouzel.errors import ModelLoadError

_LARGEST = np.float32(2**127 * (2 - 2**-7))  # the largest value of bf16
_COMPARED_ROWS = 256  # rows of a copy of the base that are compared with the model
_EMBEDDING_KINDS: set[Kind] = {"embedding_a", "embedding_b", "magnitude", "tokens", "base"}
_MATRIX_KINDS: set[Kind] = {"a", "b", "b_bias", "magnitude", "bias", "tokens", "base"}

Floats = NDArray[np.float32]


class AdapterFiles:
    def __init__(self, directory: Path, shape: AdapterShape) -> None:
        """Raises ModelLoadError if the directory has no adapter for a model of this shape."""
        self._directory = directory
        self._shape = shape
        self._matrices = {matrix.name: matrix for matrix in shape.matrices}
        self._config = read_config(directory)
        self._tensors = AdapterTensors(directory)
        self._modules = self._tensors.modules
        for name, kinds in self._modules.items():
            self._check_module(name, kinds)
        tied_embedding = self._embedding_name if self._is_head_tied else ""
        check_completeness(self._directory, self._config, self._tensors, tied_embedding)
        self._ranks = {name: self._check_rank(name) for name in self._modules}
        self._alphas = values_by_pattern(
            self._config.alpha_pattern or {}, "alpha_pattern", self._tensors.stored_names
        )
        self._check_ranks()

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the matrices that the adapter changes."""
        names = [name for name in self._modules if name in self._matrices]
        if self._is_tied_head_changed and HEAD not in names:
            names.append(HEAD)
        return tuple(names)

    def read(self, name: str) -> MatrixChange:
        """Reads the change of a matrix, which `names` lists.

        Raises ModelLoadError if a value is too large for bf16 or not finite.
        """
        matrix, rank = self._matrices[name], self._ranks.get(name, 0)
        scale = self._scale(name)
        a = np.zeros((0, matrix.num_columns), np.float32)
        b = np.zeros((matrix.num_rows, 0), np.float32)
        if rank:
            a, b = self._read(name, "a"), self._read(name, "b") * scale
        b_bias = self._read_if_present(name, "b_bias")
        tokens_of = self._embedding_name if name == HEAD and self._is_tied_head_changed else name
        tokens = self._token_indices(tokens_of)
        tensors = MatrixTensors(
            a=a,
            b=b,
            b_bias=None if b_bias is None else b_bias * scale,
            magnitude=self._read_if_present(name, "magnitude"),
            bias=self._read_if_present(name, "bias"),
            tokens=tokens,
            token_rows=self._read(tokens_of, "tokens") if tokens else None,
        )
        change = compute_change(matrix, tensors)
        for what, values in (
            ("lora_A", change.a),
            ("lora_B", change.b),
            ("the factor", change.factor),
            ("the bias", change.shift),
        ):
            self._check_values(name, what, values)
        return change

    def read_norms(self) -> dict[str, Floats]:
        """Returns the differences to the norms of the model, by the name of the tensor."""
        differences = {}
        for name, kinds in self._modules.items():
            for kind in kinds:
                tensor = f"{name}.{kind}"
                if tensor in self._shape.norms:
                    differences[tensor] = self._read(name, kind) - self._shape.norms[tensor]
                    self._check_values(name, kind, differences[tensor])
        return differences

    def read_embedding(self) -> EmbeddingChange | None:
        """Returns the change of the embedding, None if it stays."""
        table, name = self._shape.embedding, self._embedding_name
        kinds = self._modules.get(name, {})
        if table is None or not {"embedding_a", "tokens"} & kinds.keys():
            return None
        tokens = self._token_indices(name)
        a = np.zeros((0, table.num_rows), np.float32)
        b = np.zeros((table.num_columns, 0), np.float32)
        if "embedding_a" in kinds:
            a = self._read(name, "embedding_a")
            b = self._read(name, "embedding_b") * self._scale(name)
        change = compute_embedding(
            table,
            MatrixTensors(
                a=a,
                b=b,
                magnitude=self._read_if_present(name, "magnitude"),
                tokens=tokens,
                token_rows=self._read(name, "tokens") if tokens else None,
            ),
        )
        for values in (change.a, change.b, change.factor, change.token_rows):
            self._check_values(name, "the change", values)
        return change

    @property
    def _embedding_name(self) -> str:
        return "" if self._shape.embedding is None else self._shape.embedding.name

    @property
    def _is_tied_head_changed(self) -> bool:
        """Tells whether rows of the embedding are replaced, which are rows of the head as well."""
        return self._is_head_tied and "tokens" in self._modules.get(self._embedding_name, {})

    @property
    def _is_head_tied(self) -> bool:
        table, head = self._shape.embedding, self._matrices.get(HEAD)
        return table is not None and head is not None and head.weights is table.weights

    def _scale(self, name: str) -> np.float32:
        alpha, rank = self._alphas.get(name, self._config.lora_alpha), self._ranks.get(name) or 1
        return np.float32(alpha / (math.sqrt(rank) if self._config.use_rslora else rank))

    def _token_indices(self, name: str) -> tuple[int, ...]:
        if "tokens" not in self._modules.get(name, {}):
            return ()
        return tuple(self._config.token_indices(self._tensors.stored_names[name]))

    def _read(self, name: str, kind: Kind) -> Floats:
        return _read_whole(self._modules[name][kind])

    def _read_if_present(self, name: str, kind: Kind) -> Floats | None:
        return self._read(name, kind) if kind in self._modules.get(name, {}) else None

    def _check_values(self, name: str, what: str, values: Floats | None) -> None:
        if values is not None and not (np.abs(values) <= _LARGEST).all():
            self._refuse(f"{what} of {name} has values that are not finite or too large for bf16")

    def _check_module(self, name: str, kinds: Mapping[Kind, TensorLocation]) -> None:
        """Raises ModelLoadError if the graph lacks a tensor's part, or the tensors do not fit."""
        if "weight" in kinds and not find_parts(name, "weight", kinds["weight"]):
            self._refuse_whole(name)
        self._check_parts(name, kinds)
        if name in self._matrices and kinds.keys() <= _MATRIX_KINDS:
            self._check_matrix(name, kinds)
        elif HEAD not in self._matrices and (name == HEAD or "tokens" in kinds):
            self._refuse(
                f"{name} cannot be adapted, because the graph of this model has no head. A model "
                "that makes vectors has none. With --mtp, or with an assistant in --draft-model, "
                "the head is a graph of its own: serve the model without them"
            )
        elif name == self._embedding_name and kinds.keys() <= _EMBEDDING_KINDS:
            self._check_embedding(name, kinds)
        elif all(f"{name}.{kind}" in self._shape.norms for kind in kinds):
            for kind, location in kinds.items():
                self._check_shape(location, self._shape.norms[f"{name}.{kind}"].shape)
        elif "weight" in kinds:
            self._refuse_whole(name)
        else:
            own = sorted({each.rpartition(".")[2] for each in self._matrices})
            self._refuse(
                f"{name} cannot be adapted; in the layers of this model these matrices can: "
                f"{', '.join(own)}"
            )

    def _check_parts(self, name: str, kinds: Mapping[Kind, TensorLocation]) -> None:
        for kind, location in kinds.items():
            missing = sorted(find_parts(name, kind, location) - self._shape.limits.parts)
            if missing:
                options = " ".join(f"--lora-parts {part}" for part in missing)
                self._refuse(
                    f"tensor {brief(location.name)} needs a part of the graph that this server "
                    f"was started without: start it with {options}, or with --lora and this adapter"
                )

    def _refuse_whole(self, name: str) -> NoReturn:
        self._refuse(
            f"{name}.weight replaces weights whole (modules_to_save), which is supported for "
            "norms only: train a matrix, the embedding or the head with LoRA (target_modules) or "
            "single tokens (trainable_token_indices), or merge the adapter"
        )

    def _check_matrix(self, name: str, kinds: Mapping[Kind, TensorLocation]) -> None:
        matrix = self._matrices[name]
        for kind in ("b_bias", "magnitude", "bias"):
            if kind in kinds:
                self._check_shape(kinds[kind], (matrix.num_rows,))
        if "b_bias" in kinds and "magnitude" in kinds:
            self._refuse(f"{name} has both lora_bias and use_dora, which PEFT does not define")
        if "bias" in kinds and matrix.bias is None:
            self._refuse(f"{name} has a bias, which this model lacks there")
        if "tokens" in kinds:
            self._check_tokens(name, kinds, matrix.num_rows, matrix.num_columns)
        if "base" in kinds:
            self._check_copy(name, kinds["base"], matrix.weights)

    def _check_embedding(self, name: str, kinds: Mapping[Kind, TensorLocation]) -> None:
        table = self._shape.embedding
        assert table is not None
        if "magnitude" in kinds:
            self._check_shape(kinds["magnitude"], (table.num_columns,))
        if "tokens" in kinds:
            self._check_tokens(name, kinds, table.num_rows, table.num_columns)
            num_tokens, limit = kinds["tokens"].shape[0], self._shape.max_embedding_tokens
            if num_tokens > limit:
                self._refuse(
                    f"{name} has {num_tokens} trained tokens; max_lora_rank, {self._shape.rank}, "
                    f"leaves memory for {limit}"
                )
        if "base" in kinds:
            self._check_copy(name, kinds["base"], table.weights)

    def _check_tokens(
        self, name: str, kinds: Mapping[Kind, TensorLocation], num_rows: int, num_columns: int
    ) -> None:
        if kinds.keys() & {"a", "b", "embedding_a", "embedding_b"}:
            self._refuse(f"{name} has both LoRA and trained tokens, which PEFT does not define")
        indices = self._token_indices(name)
        self._check_shape(kinds["tokens"], (len(indices), num_columns))
        if len(set(indices)) < len(indices) or any(index >= num_rows for index in indices):
            raise ModelLoadError(
                f"{self._directory / ADAPTER_CONFIG}: trainable_token_indices must be different "
                f"tokens below {num_rows}, given {brief(indices)}"
            )

    def _check_copy(self, name: str, location: TensorLocation, weights: Matrix | None) -> None:
        """Raises ModelLoadError if a copy of the base weights is not the model's own."""
        assert weights is not None
        self._check_shape(location, weights.shape)
        first = next(read_chunks(location, location.shape[-1], _COMPARED_ROWS))
        if differs(weights, to_float32(first, location.dtype)):
            self._refuse(
                f"{name}.base_layer.weight differs from the weights of this model: the adapter "
                "was trained on another model"
            )

    def _check_rank(self, name: str) -> int:
        """Returns the rank of A and B of a module, 0 if it has none; checks their shapes."""
        kinds = self._modules[name]
        if name in self._matrices:
            matrix, a, b = self._matrices[name], kinds.get("a"), kinds.get("b")
            num_columns, num_rows = matrix.num_columns, matrix.num_rows
        elif name == self._embedding_name and self._shape.embedding is not None:
            table, a, b = self._shape.embedding, kinds.get("embedding_a"), kinds.get("embedding_b")
            num_columns, num_rows = table.num_rows, table.num_columns
        else:
            return 0
        rank = 0
        if (a is None) != (b is None):
            self._refuse(f"{name} lacks lora_{'A' if a is None else 'B'}")
        if a is not None and b is not None:
            rank = a.shape[0] if a.shape else 0
            self._check_shape(a, (rank, num_columns))
            self._check_shape(b, (num_rows, rank))
            self._check_completions(name, kinds)
        elif "magnitude" in kinds or "b_bias" in kinds:
            self._refuse(f"{name} lacks lora_A and lora_B")
        total = rank + (len(self._token_indices(name)) if name in self._matrices else 0)
        least, largest = 0 if a is None else 1, self._shape.rank
        if not (least <= rank and total <= largest):
            self._refuse(f"{name} has rank {total}, must be from 1 to max_lora_rank, {largest}")
        return rank

    def _check_completions(self, name: str, kinds: Mapping[Kind, TensorLocation]) -> None:
        """Raises ModelLoadError if A and B lack a part that the configuration gives all of them."""
        if self._config.use_dora and "magnitude" not in kinds:
            self._refuse(f"{name} lacks lora_magnitude_vector, which use_dora needs")
        if self._config.lora_bias and "b" in kinds and "b_bias" not in kinds:
            self._refuse(f"{name} lacks lora_B.bias, which lora_bias needs")

    def _check_ranks(self) -> None:
        """Raises ModelLoadError if the rank of a matrix differs from the rank in the configuration.

        The scale depends on the configured rank, so one of the two must be wrong. Tokens of a tied
        head take ranks, too.
        """
        ranks = values_by_pattern(
            self._config.rank_pattern or {}, "rank_pattern", self._tensors.stored_names
        )
        for name, rank in self._ranks.items():
            if rank and (configured := ranks.get(name, self._config.r)) != rank:
                raise ModelLoadError(
                    f"{self._directory / ADAPTER_CONFIG}: the rank of {name} is {configured:g}, "
                    f"but its tensors have rank {rank}"
                )
        if self._is_tied_head_changed:
            if "tokens" in self._modules.get(HEAD, {}):
                self._refuse(
                    f"{HEAD} and {self._embedding_name} have trained tokens of their own, but in "
                    f"this model the head is the embedding: train its tokens in "
                    f"{self._embedding_name} only"
                )
            total = len(self._token_indices(self._embedding_name)) + self._ranks.get(HEAD, 0)
            if total > self._shape.rank:
                self._refuse(
                    f"the head is the embedding, where each trained token takes a rank: {HEAD} has "
                    f"rank {total}, must be from 1 to max_lora_rank, {self._shape.rank}"
                )

    def _check_shape(self, location: TensorLocation, shape: tuple[int, ...]) -> None:
        if location.shape != shape:
            self._refuse(
                f"tensor {brief(location.name)} has the shape {list(location.shape)}, "
                f"the model needs {list(shape)}"
            )

    def _refuse(self, fault: str) -> NoReturn:
        raise ModelLoadError(f"{self._tensors.path}: {fault}")


def _read_whole(location: TensorLocation) -> Floats:
    """Reads a tensor as float32."""
    chunks = [
        to_float32(chunk, location.dtype) for chunk in read_chunks(location, location.shape[-1])
    ]
    return np.concatenate(chunks).reshape(location.shape).copy()
