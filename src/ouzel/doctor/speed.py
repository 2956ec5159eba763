"""Measures how fast this machine reads weights and multiplies matrices, as serving does."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ouzel.backends.openvino.auto_precision import prefers_int8
from ouzel.backends.openvino.library import ops, ov
from ouzel.backends.openvino.withheld_instructions import (
    withholds_amx,
    withholds_bf16,
    withholds_int8,
)
from ouzel.machine.instructions import processor_flags
from ouzel.observability.progress import stage

DEVICE = "CPU"
COLUMNS = 4096
MATRIX_BYTES = COLUMNS * COLUMNS  # int8
LARGE_BYTES, SMALL_BYTES = 512 * 2**20, 128 * 2**20  # weights, much larger than CPU caches
MIN_FREE_BYTES = 4 * 2**30  # free memory for the test with LARGE_BYTES
NUM_ROWS = 256  # tokens of a prompt
TEST_S = 0.7
# f16 is fast on ARM and on new servers.
_SHORT_FLOATS = {"bf16": ("BF16", ov.Type.bf16), "f16": ("FP16", ov.Type.f16)}
_GROUP_SIZE = 64  # group size of dynamic quantisation in the backend


@dataclass(frozen=True, slots=True)
class Speed:
    precision: str  # a value of --precision
    gflops: float  # 10^9 operations per second
    is_auto: bool  # --precision auto chooses this precision


@dataclass(frozen=True, slots=True)
class Speeds:
    weight_gb_per_s: float  # 10^9 bytes per second, read by all cores for one token
    matrices: tuple[Speed, ...]

    @property
    def fastest(self) -> Speed:
        return max(self.matrices, key=lambda speed: speed.gflops)

    @property
    def auto(self) -> Speed:
        return next(speed for speed in self.matrices if speed.is_auto)


def measure_speeds(available_bytes: int) -> Speeds:
    """Measures for a few seconds; takes two to three times the memory of the test weights.

    Raises RuntimeError if OpenVINO fails.
    """
    core = ov.Core()
    num_bytes = LARGE_BYTES if available_bytes >= MIN_FREE_BYTES else SMALL_BYTES
    with stage("measuring the speed of reading weights"):
        gb_per_s = _weight_gb_per_s(core, num_bytes)
    with stage("measuring the speed of multiplying matrices"):
        matrices = _matrix_speeds(core)
    return Speeds(gb_per_s, matrices)


def _weight_gb_per_s(core: ov.Core, num_bytes: int) -> float:
    num_matrices = num_bytes // MATRIX_BYTES
    compiled = _compiled(core, {}, num_matrices)
    request = compiled.create_infer_request()
    row = np.ones((1, COLUMNS), np.float32)
    return num_matrices * MATRIX_BYTES / _best_s(lambda: request.infer({0: row})) / 1e9


def _matrix_speeds(core: ov.Core) -> tuple[Speed, ...]:
    auto = _compiled(core, {}).get_property("INFERENCE_PRECISION_HINT").to_string()
    capabilities = core.get_property(DEVICE, "OPTIMIZATION_CAPABILITIES")
    ways: dict[str, dict[str, object]] = {
        "f32": {"INFERENCE_PRECISION_HINT": ov.Type.f32, "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0},
    }
    if not withholds_int8():
        ways["int8"] = {
            "INFERENCE_PRECISION_HINT": ov.Type.f32,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": _GROUP_SIZE,
        }
    for name, (capability, kind) in _SHORT_FLOATS.items():
        is_withheld = name == "bf16" and withholds_bf16()
        if (capability in capabilities and not is_withheld) or auto == name:
            ways[name] = {"INFERENCE_PRECISION_HINT": kind}
    # With --precision auto the backend quantises activations where it would compute in f32, and on
    # CPUs that prefer int8 to bf16.
    is_int8 = auto == "f32" or prefers_int8(processor_flags(), may_use_amx=not withholds_amx())
    taken = "int8" if is_int8 and "int8" in ways else auto
    return tuple(
        Speed(name, _gflops(_compiled(core, properties)), name == taken)
        for name, properties in ways.items()
    )


def _compiled(
    core: ov.Core, properties: dict[str, object], num_matrices: int = 1
) -> ov.CompiledModel:
    """Compiles a chain of matrix products with the instructions that the backend may use."""
    taken: dict[str, object] = {"PERFORMANCE_HINT": "LATENCY"}
    if withholds_bf16():
        taken["INFERENCE_PRECISION_HINT"] = ov.Type.f32
    if withholds_int8():
        taken["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
    return core.compile_model(
        _product([_int8_matrix() for _ in range(num_matrices)]), DEVICE, taken | properties
    )


def _gflops(compiled: ov.CompiledModel) -> float:
    request = compiled.create_infer_request()
    rows = np.ones((NUM_ROWS, COLUMNS), np.float32)
    return 2 * NUM_ROWS * MATRIX_BYTES / _best_s(lambda: request.infer({0: rows})) / 1e9


def _product(matrices: Sequence[ov.Node]) -> ov.Model:
    rows = ops.parameter([-1, COLUMNS], ov.Type.f32)
    node = rows
    for matrix in matrices:
        node = ops.matmul(node, matrix, False, True)
    return ov.Model([node], [rows])


def _int8_matrix() -> ov.Node:
    """Returns a matrix as the backend compresses it: int8 with scale and zero point per row."""
    values = ops.constant(np.random.default_rng(0).integers(0, 256, (COLUMNS, COLUMNS), np.uint8))
    zeros = ops.constant(np.full((COLUMNS, 1), 128, np.uint8))
    scales = ops.constant(np.full((COLUMNS, 1), 1e-4, np.float32))
    centred = ops.subtract(ops.convert(values, ov.Type.f32), ops.convert(zeros, ov.Type.f32))
    return ops.multiply(centred, scales)


def _best_s(run: Callable[[], object]) -> float:
    """Returns the shortest run time in seconds. It repeats `run` for TEST_S, at least three times,
    after one run that is not measured.
    """
    run()
    times: list[float] = []
    begun_at = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begun_at < TEST_S:
        started_at = time.perf_counter()
        run()
        times.append(time.perf_counter() - started_at)
    return min(times)
