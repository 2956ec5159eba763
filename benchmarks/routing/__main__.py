"""Compares routing policies in a simulation, and writes the table of benchmarks/RESULTS.md.

    uv run python -m benchmarks.routing [--replicas 2 8 64] [--seeds 11 12 13 14 15]
        [--load 0.2] [--write]
    uv run python -m benchmarks.routing --trace FILE [--speed 1.0] [--replicas 8]
    uv run python -m benchmarks.routing --tune
    uv run python -m benchmarks.routing --speeds

A replica computes 4,000 prompt tokens a second, one prompt after the other, decodes beside it, and
caches 154k tokens (`replica.py`). `--load` is the share of this rate that the requests need if
nothing is computed twice. All policies get the same sessions; the first quarter of the requests is
not counted. `--tune` tries the weights of the server's policy, on seeds that the table does not
use.
"""

import argparse
from pathlib import Path

from benchmarks.comparison.report import with_section
from benchmarks.routing.policies import POLICIES
from benchmarks.routing.simulation import Experiment, Outcome, simulate
from benchmarks.routing.speeds import speed_table
from benchmarks.routing.tables import policy_table
from benchmarks.routing.traces import read_trace, replay
from benchmarks.routing.tuning import tune

BEGIN, END = "<!-- routing:begin -->", "<!-- routing:end -->"
_RESULTS = Path(__file__).parents[1] / "RESULTS.md"
_WORKLOADS = ("chat", "agents", "documents", "mix", "trace")
_NUM_REQUESTS = {1: 1000, 2: 1500, 8: 6000, 64: 6000, 512: 40_000}  # key: number of replicas


def main() -> None:
    arguments = _parser().parse_args()
    if arguments.tune:
        for line in tune():
            print(line, flush=True)
    elif arguments.speeds:
        print(speed_table())
    elif arguments.trace is not None:
        print(_compare_trace(arguments))
    else:
        section = "\n\n".join(
            _compare_workloads(num_replicas, arguments) for num_replicas in arguments.replicas
        )
        print(section)
        if arguments.write:
            _RESULTS.write_text(with_section(_RESULTS.read_text(), section, begin=BEGIN, end=END))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicas", type=int, nargs="+", default=[2, 8, 64])
    parser.add_argument("--workloads", nargs="+", default=_WORKLOADS, choices=_WORKLOADS)
    parser.add_argument("--policies", nargs="+", default=POLICIES, choices=POLICIES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13, 14, 15])
    parser.add_argument("--load", type=float, default=0.2)
    parser.add_argument(
        "--requests", type=int, help="requests of a run (default: by the number of replicas)"
    )
    parser.add_argument("--trace", type=Path, help="a JSONL file in Mooncake's form")
    parser.add_argument("--speed", type=float, default=1.0, help="of the trace's clock")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--speeds", action="store_true", help="time keys and choices")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {_RESULTS.name}")
    return parser


def _compare_workloads(num_replicas: int, arguments: argparse.Namespace) -> str:
    num_requests = arguments.requests or _NUM_REQUESTS.get(num_replicas, 100 * num_replicas + 2000)

    def run(policy: str, workload: str) -> list[Outcome]:
        return [
            simulate(policy, Experiment(workload, num_replicas, num_requests, arguments.load, seed))
            for seed in arguments.seeds
        ]

    rows = {
        policy: {workload: run(policy, workload) for workload in arguments.workloads}
        for policy in arguments.policies
    }
    return f"**{num_replicas} replicas**, {num_requests:,} requests a run\n\n{policy_table(rows)}"


def _compare_trace(arguments: argparse.Namespace) -> str:
    requests = read_trace(arguments.trace)
    name = arguments.trace.stem

    def run(policy: str, num_replicas: int) -> list[Outcome]:
        experiment = Experiment(name, num_replicas, len(requests), 0.0, 1)
        return [simulate(policy, experiment, sessions=replay(requests, speed=arguments.speed))]

    return policy_table(
        {
            policy: {f"{num} replicas": run(policy, num) for num in arguments.replicas}
            for policy in arguments.policies
        }
    )


if __name__ == "__main__":
    main()
