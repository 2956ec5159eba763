"""Products with compressed weights in bf16 and with int8 activations, measured in turns.

Eight pairs of random matrices, one after the other, something non-linear between them; the properties are those that a
model with such weights is compiled with. Printed are medians in milliseconds of all matrices.

usage: uv run python -m benchmarks.products [--shape COLUMNS/ROWS] [--widths int8 int4] [--rounds N]
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.experts import RandomWeights
from ouzel.backends.openvino.compilation import compile_properties
from ouzel.backends.openvino.graph.builder import Builder
from ouzel.backends.openvino.language_model import LanguageModel
from ouzel.backends.openvino.library import ops, ov
from ouzel.config import EngineConfig, Precision
from ouzel.config.weights import read_weights

PRECISIONS: tuple[Precision, ...] = ("bf16", "int8")
NUM_ROWS = (1, 2, 4, 8, 16, 32, 64, 256, 1024)
NUM_PAIRS = 8

Run = Callable[[NDArray[np.float32]], object]


def compiled(width: str, columns: int, rows: int, precision: Precision) -> Run:
    b = Builder(RandomWeights(), read_weights(width))
    x = given = ops.parameter([-1, columns], ov.Type.f32)
    for pair in range(NUM_PAIRS):
        x = ops.tanh(b.linear(x, f"{pair}.up", columns, rows))
        x = ops.tanh(b.linear(x, f"{pair}.down", rows, columns))
    model = LanguageModel(
        graph=ov.Model([ops.result(x)], [given], "products"),
        arrays=b.graph.arrays,
        ropes={},
        hidden_size=columns,
        vocab_size=rows,
        max_positions=1,
    )
    properties = compile_properties(EngineConfig(precision=precision), model)
    request = ov.Core().compile_model(model.graph, "CPU", properties).create_infer_request()

    def run(x: NDArray[np.float32]) -> object:
        return model.arrays, request.infer({0: x})

    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure products in bf16 and with int8 activations."
    )
    parser.add_argument("--shape", default="2048/6144")
    parser.add_argument("--widths", nargs="+", default=["int8", "int4"])
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    columns, rows = (int(size) for size in arguments.shape.split("/"))
    forms = {
        (width, each): compiled(width, columns, rows, each)
        for width in arguments.widths
        for each in PRECISIONS
    }
    print("| rows | " + " | ".join(f"{width} in {precision}" for width, precision in forms) + " |")
    print("|---:" * (len(forms) + 1) + "|")
    rng = np.random.default_rng(0)
    for num_rows in NUM_ROWS:
        times: list[list[float]] = [[] for _ in forms]
        for _ in range(arguments.rounds + 1):  # one to warm up
            x = rng.standard_normal((num_rows, columns), np.float32)
            for index, run in enumerate(forms.values()):
                started = time.perf_counter()
                run(x)
                times[index].append(1000 * (time.perf_counter() - started))
        print(
            f"| {num_rows} | " + " | ".join(f"{np.median(each[1:]):.1f}" for each in times) + " |",
            flush=True,
        )


if __name__ == "__main__":
    main()
