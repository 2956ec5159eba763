"""Decides the encoding of each matrix of a checkpoint from recorded activations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ouzel.backends.openvino.calibration.blas_threads import all_blas_threads
from ouzel.backends.openvino.calibration.error_feedback import (
    DAMPING,
    MAX_COLUMNS,
    REFINING_SWEEPS,
    Feedback,
    column_blocks,
    encode_blocks,
    factorise,
)
from ouzel.backends.openvino.calibration.recording import Recording
from ouzel.backends.openvino.calibration.widths import Candidate, choose_int8, suffering
from ouzel.backends.openvino.weights.compress import Encode, find_origin
from ouzel.backends.openvino.weights.encodings import Encoding, Parts, encode_int8_in_groups
from ouzel.backends.openvino.weights.measured import MeasuredWeights
from ouzel.backends.openvino.weights.source import Matrix, MatrixSpec, Tensors
from ouzel.config.weights import WidthOption
from ouzel.observability.progress import stage

GROUP_SIZE = 64
INT4 = Encoding("i4", "f16", group_size=GROUP_SIZE)
INT8 = Encoding("i8", "f16", group_size=GROUP_SIZE)
# More than DAMPING: if embedding and head are one matrix, its rows are looked up, too.
EMBEDDING_DAMPING = 0.3


@dataclass(frozen=True, slots=True)
class Target:
    """A matrix that may be calibrated, and its encoding without calibration."""

    spec: MatrixSpec
    encoding: Encoding


class ListedWeights:
    """Implements `Weights` without reading them, and lists the matrices that a graph asks for."""

    def __init__(self, tensors: Tensors, *, recompress: bool) -> None:
        self._tensors = tensors
        self._recompress = recompress
        self._weights = MeasuredWeights(tensors, recompress=recompress)
        self.targets: list[Target] = []
        self.num_kept = 0  # matrices that stay as the checkpoint stores them
        self.arrays: dict[str, tuple[int, ...]] = {}  # shapes by name

    def matrix(self, spec: MatrixSpec, width: WidthOption) -> Matrix:
        origin = find_origin(spec, width, self._tensors, recompress=self._recompress)
        if origin.may_be_calibrated:
            self.targets.append(Target(spec, origin.encoding))
        self.num_kept += not origin.may_be_calibrated
        return self._weights.matrix(spec, width)

    def array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        self.arrays[name] = shape
        return self._weights.array(name, shape)

    def has(self, name: str) -> bool:
        return self._weights.has(name)


class Calibration:
    """Gives the encodings and encoders of calibrated matrices; implements `MatrixEncoders`.

    The function `calibrate` chooses the encodings.
    """

    def __init__(
        self, recording: Recording, int4_keys: frozenset[str], int8_keys: frozenset[str]
    ) -> None:
        self._recording = recording
        self._int4_keys = int4_keys
        self._int8_keys = int8_keys
        # Matrices with the same input follow one another, so the latest feedbacks are stored.
        self._latest: tuple[tuple[int, float], list[Feedback]] | None = None

    def encoding(self, spec: MatrixSpec) -> Encoding | None:
        """Returns the encoding of a matrix, None if the matrix is not calibrated."""
        if spec.key in self._int8_keys:
            return INT8
        return INT4 if spec.key in self._int4_keys else None

    def encoder(self, spec: MatrixSpec) -> tuple[Encoding, Encode] | None:
        encoding = self.encoding(spec)
        if encoding is None:
            return None
        if encoding == INT8:
            return encoding, encode_int8_with_f16_scales
        feedbacks, num_sweeps = self._feedbacks(spec), self._num_sweeps(spec)
        return encoding, partial(
            encode_blocks, feedbacks=feedbacks, group_size=GROUP_SIZE, num_sweeps=num_sweeps
        )

    def _num_sweeps(self, spec: MatrixSpec) -> int:
        """Returns the sweeps of refinement for a matrix.

        It returns 0 for matrices that gain little: matrices whose products are added to the
        residual stream, and wide matrices.
        """
        key = spec.key
        is_divided = self._recording.has(key) and self._recording.is_divided(key)
        return 0 if is_divided or spec.shape[-1] > MAX_COLUMNS else REFINING_SWEEPS

    def _feedbacks(self, spec: MatrixSpec) -> list[Feedback]:
        """Returns the weights by which rounding errors are corrected, for each block of columns."""
        key, columns = spec.key, spec.shape[-1]
        if not self._recording.has(key):
            # An embedding has no recorded input: all columns have the same weight, and each group
            # of columns is a block of its own.
            identity = np.eye(GROUP_SIZE, dtype=np.float32)
            feedback = Feedback(identity, identity, np.ones(GROUP_SIZE, np.float32))
            return [feedback] * (columns // GROUP_SIZE)
        damping = EMBEDDING_DAMPING if "embed" in key else DAMPING
        place = (self._recording.input_id(key), damping)
        if self._latest is None or self._latest[0] != place:
            self._latest = None  # freed first: two would take memory at once
            with all_blas_threads():
                blocks = column_blocks(columns, GROUP_SIZE)
                self._latest = (
                    place,
                    [factorise(self._recording.moments(key, each), damping) for each in blocks],
                )
        return self._latest[1]


def encode_int8_with_f16_scales(rows: NDArray[np.float32]) -> Parts:
    """Encodes rows as i8 with an f16 scale for each group."""
    scales = encode_int8_in_groups(rows)["scales"].view(np.float32)
    rounded = np.maximum(scales, np.float32(2.0**-24)).astype(np.float16)
    groups = rows.reshape(len(rows), -1, GROUP_SIZE) / rounded.astype(np.float32)[..., None]
    levels = np.clip(np.rint(groups), -127, 127)
    return {"values": levels.astype(np.int8).reshape(rows.shape), "scales": rounded}


def calibrate(tensors: Tensors, targets: Sequence[Target], recording: Recording) -> Calibration:
    """Chooses the width of each target, in one pass over the weights of all targets."""
    whole = [each for each in targets if is_calibrated(each.spec)]
    candidates = []
    with stage(
        "measuring the loss of four bits", sum(_num_weights(each.spec) for each in whole)
    ) as measuring:
        for target in whole:
            candidates.append(_candidate(tensors, target.spec, recording))
            measuring.advance(_num_weights(target.spec))
    int8_keys = choose_int8(candidates)
    return Calibration(recording, frozenset(each.key for each in candidates) - int8_keys, int8_keys)


def is_calibrated(spec: MatrixSpec) -> bool:
    """Tells whether a matrix can be calibrated: not a matrix of experts, and made of whole
    groups.
    """
    return len(spec.shape) == 2 and spec.shape[-1] % GROUP_SIZE == 0


def _num_weights(spec: MatrixSpec) -> int:
    return spec.shape[0] * spec.shape[1]


def _candidate(tensors: Tensors, spec: MatrixSpec, recording: Recording) -> Candidate:
    columns, key = spec.shape[-1], spec.key
    is_divided = recording.has(key) and recording.is_divided(key)
    squares = recording.mean_squares(key) if recording.has(key) else np.ones(columns, np.float32)
    origin = find_origin(spec, "int4", tensors)
    rows = chain.from_iterable(map(tensors.rows, origin.tensors))
    return Candidate(
        key, _num_weights(spec), columns, suffering(rows, squares, is_divided=is_divided)
    )


def distinct(targets: Iterable[Target]) -> Iterator[Target]:
    """Yields each matrix once, although a graph may ask for it twice."""
    return iter({each.spec.key: each for each in targets}.values())
