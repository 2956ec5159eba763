"""Times short requests that come just after two long prompts, and these too; checkouts take turns, each in a process.

    uv run python -m benchmarks.fairness . ../other-checkout [--shape small] [--rounds 5]

Each checkout needs its own `.venv` (`uv sync`). Printed are medians: the time to the first token of the short ones, of
the first and of the second long one (which is when all is computed), and that of a short request alone.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.make_checkpoint import SHAPES, write_checkpoint
from ouzel.sampling import SamplingParams
from ouzel.serve.engine_factories import openvino_engine
from ouzel.types.engine_request import EngineRequest

LONG, SHORT = 13_800, 16  # tokens
NUM_LONG, NUM_SHORT = 2, 3
Times = dict[str, float]


def measure(model: str, cache_dir: str) -> Times:
    """Runs with the interpreter, and so the engine, of the checkout that is measured."""
    engine = openvino_engine(
        {
            "model": {"model": model, "cache_dir": cache_dir},
            "engine": {"kv_cache_gib": 2, "max_num_batched_tokens": 512},
        }
    )
    first_token_at: dict[str, float] = {}

    def add(name: str, num_tokens: int, seed: int) -> None:
        token_ids = [300 + (seed * 7919 + i * i) % 5000 for i in range(num_tokens)]
        params = SamplingParams(max_tokens=SHORT, temperature=0.0)
        engine.add(EngineRequest(request_id=name, prompt_token_ids=token_ids, params=params))

    def step() -> None:
        for output in engine.step():
            first_token_at.setdefault(output.request_id, time.perf_counter())

    def finish() -> None:
        while engine.has_unfinished():
            step()

    add("warm-up", 600, 1)
    finish()
    alone_added_at = time.perf_counter()
    add("alone", SHORT, 2)
    finish()
    long_added_at = time.perf_counter()
    for i in range(NUM_LONG):
        add(f"long {i}", LONG, 3 + i)
    step()
    short_added_at = time.perf_counter()
    for i in range(NUM_SHORT):
        add(f"short {i}", SHORT, 10 + i)
    finish()
    engine.close()
    return {
        "short": max(first_token_at[f"short {i}"] for i in range(NUM_SHORT)) - short_added_at,
        "first long": first_token_at["long 0"] - long_added_at,
        "second long": first_token_at["long 1"] - long_added_at,
        "short alone": first_token_at["alone"] - alone_added_at,
    }


def measure_in(checkout: Path, model: Path) -> Times:
    command = (
        str(checkout / ".venv/bin/python"),
        "-m",
        "benchmarks.fairness",
        "--measure",
        str(model),
    )
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    times: Times = json.loads(output.splitlines()[-1])
    print("one round:", _line(checkout, times), flush=True)
    return times


def main() -> None:
    if sys.argv[1] == "--measure":
        with tempfile.TemporaryDirectory() as cache_dir:
            print(json.dumps(measure(sys.argv[2], cache_dir)))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    checkouts = [checkout.resolve() for checkout in arguments.checkouts]
    with tempfile.TemporaryDirectory() as directory:
        model = Path(directory) / arguments.shape
        write_checkpoint(model, SHAPES[arguments.shape], seed=0)
        rounds = [
            [measure_in(checkout, model) for checkout in checkouts] for _ in range(arguments.rounds)
        ]
    for i, checkout in enumerate(checkouts):
        print(
            _line(
                checkout, {name: median(each[i][name] for each in rounds) for name in rounds[0][i]}
            )
        )


def _line(checkout: Path, times: Times) -> str:
    return ", ".join(
        [f"{checkout}", *(f"{name} {seconds:.2f} s" for name, seconds in times.items())]
    )


if __name__ == "__main__":
    main()
