"""Ouzel against OpenVINO GenAI and llama.cpp, taking turns in one run on the same random weights.

usage: uv run --group bench python -m benchmarks.compare [--quick] [--write] [--llama-cpp-bin DIR] [--scratch DIR]

Each product is alone in a process; in every round all of them do the same workload, one after the other, in an order
that rotates. Printed are tokens a second as medians of the rounds; ratios are Ouzel's rate over the other's in the
same round. The tables and plots go into RESULTS.md and plots/ with --write; the last line is JSON. What a workload is:
comparison/workloads.py; what the model is, and why its answers can be copies: comparison/checkpoints.py.

Ouzel guesses tokens in columns of their own only, in the rows of copies: by prompt lookup and, with --draft, by a draft
model. All are in memory at once: about 7 GB for qwen3-0.6b, more than 24 GB for qwen3-4b in 8 bits, which a smaller
machine compares in two runs, as with --without GenAI and then --without llama.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any  # JSON

from benchmarks.comparison.plots import line_chart
from benchmarks.comparison.preparation import MatrixSpec, Prepared, prepared
from benchmarks.comparison.product import Contender, NotHad
from benchmarks.comparison.report import Table, with_section
from benchmarks.comparison.rounds import Measured, Run, Workers, compare, measure
from benchmarks.comparison.servers import ask, http_rows, llama_server, ouzel_server
from benchmarks.comparison.workers import Machine
from benchmarks.comparison.workloads import Decode, Prefill, Row, Workload, full_rows, quick_rows

BENCHMARKS = Path(__file__).parent
OUR_SERVER, THEIR_SERVER, BARE_LOOP = "Ouzel's server", "llama-server", "Ouzel's bare loop"
PACKAGES = ("openvino", "openvino-genai", "llama-cpp-python")


def run_bits(
    arguments: argparse.Namespace, scratch: Path, bits: Any
) -> list[tuple[Table, Measured]]:
    """Compares all products with weights of so many bits; those of 8 bits through HTTP as well."""
    wanted = MatrixSpec(scratch, arguments.shape, bits, arguments.threads, arguments.draft)
    files = prepared(wanted)
    machine = Machine(str(scratch), arguments.threads, arguments.kv_cache_gib)
    rows = [
        row
        for row in (quick_rows() if arguments.quick else full_rows())
        if _is_wanted(row.name, arguments.only)
    ]
    contenders = [
        each
        for each in files.contenders
        if not any(part in each.name for part in arguments.without)
    ]
    found = compare(contenders, rows, machine, arguments.rounds)
    found.notes += [f"{each.name}: left out" for each in files.contenders if each not in contenders]
    found.notes = [note.replace(str(scratch), "SCRATCH") for note in (*files.notes, *found.notes)]
    title = f"{arguments.shape}, {bits} bits"
    plots = plots_of(title, found, rows)
    if arguments.write:
        write_plots(plots)
    table = Table(
        title,
        found.columns(),
        found.rows,
        found.notes,
        {name: plot.path for name, plot in plots.items()},
    )
    tables = [(table, found)]
    if bits == 8 and arguments.http:
        served = over_http(files, machine, arguments)
        tables.append(
            (Table(f"{title}, through HTTP", served.columns(), served.rows, served.notes), served)
        )
    return tables


def _is_wanted(name: str, only: list[str]) -> bool:
    return not only or any(part in name for part in only)


@dataclass(frozen=True, slots=True)
class Plot:
    path: str  # below the directory of the benchmarks
    svg: str


def plots_of(title: str, found: Measured, rows: list[Row]) -> dict[str, Plot]:
    """Returns a plot for each name that two rows or more have, with a line for each column that is in one of them."""
    plots = {}
    for name in dict.fromkeys(row.plot for row in rows if row.plot):
        points = {row.name: _x(row.workload) for row in rows if row.plot == name}
        lines: dict[str, dict[int, float]] = {}
        for column in found.columns():
            own = {
                x: found.rows[row][column].rate.median
                for row, x in points.items()
                if column in found.rows[row]
            }
            if own:
                lines[column] = own
        if len(points) > 1:
            label = "tokens of the prompt" if name == "prefill" else "sequences"
            svg = line_chart(f"{title}: {name}", label, "tokens/s", lines)
            plots[name] = Plot(f"plots/{_file_name(f'{title} {name}')}.svg", svg)
    return plots


def write_plots(plots: Mapping[str, Plot]) -> None:
    for plot in plots.values():
        path = BENCHMARKS / plot.path
        path.parent.mkdir(exist_ok=True)
        path.write_text(plot.svg)


def _x(workload: Workload) -> int:
    match workload:
        case Prefill(num_tokens=num_tokens):
            return num_tokens
        case Decode(batch=batch):
            return batch
    raise ValueError(f"{workload} has no place in a plot")


def _file_name(title: str) -> str:
    return "-".join("".join(c if c.isalnum() or c == "." else " " for c in title).split())


def over_http(files: Prepared, machine: Machine, arguments: argparse.Namespace) -> Measured:
    """Compares Ouzel's server with llama.cpp's, and with Ouzel's engine without HTTP."""
    by_product: dict[str, Contender] = {}
    for contender in files.contenders:
        by_product.setdefault(contender.product, contender)
    ours, theirs = by_product["ouzel"], by_product.get("llama.cpp")
    found, workers = (
        Measured(dict.fromkeys((OUR_SERVER, THEIR_SERVER, BARE_LOOP), OUR_SERVER)),
        Workers(machine),
    )
    rows = http_rows(16 if arguments.quick else 64)
    with ExitStack() as stack:
        url = stack.enter_context(ouzel_server(ours.model, ours.weights, machine))
        runs: dict[str, Run] = {OUR_SERVER: partial(ask, url)}
        try:
            if theirs is None:
                raise NotHad("llama-server: not had (there is no file for it)")
            max_len = max(row.prompt_len + row.output_len for row in rows.values()) + 64
            server = llama_server(arguments.llama_cpp_bin, theirs.model, max_len, machine)
            runs[THEIR_SERVER] = partial(ask, stack.enter_context(server))
        except NotHad as error:
            found.notes.append(str(error))
        runs[BARE_LOOP] = workers.run_of(ours)
        stack.callback(workers.close)
        for name, workload in rows.items():
            measure(runs, workload, arguments.rounds, found, name)
    found.notes.append(
        "the ratio beside the bare loop is what HTTP and a process boundary leave of its rate"
    )
    return found


def header(arguments: list[str]) -> str:
    """Says by which command, when, of what and on what these figures are."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} not installed")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    shown = " ".join("PATH" if Path(each).is_absolute() else each for each in arguments)
    facts = [
        f"{datetime.now(UTC):%Y-%m-%d}",
        f"at {commit.stdout.strip() or 'no commit'}",
        *versions,
    ]
    facts += [platform.machine(), f"{len(os.sched_getaffinity(0))} cores"]
    return f"`python -m benchmarks.compare {shown}` ({', '.join(facts)})."


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--quick", action="store_true", help="fewer and shorter workloads")
    parser.add_argument(
        "--rounds", type=int, help="of each workload, after one to warm up (default: 5, quick 2)"
    )
    parser.add_argument(
        "--shape", default="qwen3-0.6b", choices=["qwen3-0.6b", "qwen3-1.7b", "qwen3-4b"]
    )
    parser.add_argument("--bits", type=int, nargs="+", default=[8, 4], choices=[8, 4])
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="PART", help="rows with this in their name"
    )
    parser.add_argument(
        "--without",
        nargs="+",
        default=[],
        metavar="PART",
        help="no columns with this in their name",
    )
    parser.add_argument(
        "--threads", type=int, default=cores, help="of every product (default: the cores)"
    )
    parser.add_argument(
        "--kv-cache-gib",
        type=float,
        default=2.0,
        help="of Ouzel and GenAI; llama.cpp takes what it needs",
    )
    parser.add_argument(
        "--no-http", dest="http", action="store_false", help="leave the servers out"
    )
    parser.add_argument(
        "--llama-cpp-bin",
        type=Path,
        metavar="DIR",
        help="where llama-server is; without, it is left out",
    )
    parser.add_argument(
        "--draft",
        action="store_true",
        help="write a draft model, and let Ouzel and llama.cpp guess with it",
    )
    parser.add_argument(
        "--scratch", type=Path, help="where models are kept for later runs (default: nowhere)"
    )
    parser.add_argument(
        "--busy",
        action="store_true",
        help="the machine has other work: OpenMP's threads wait asleep",
    )
    parser.add_argument("--write", action="store_true", help="renew RESULTS.md and plots/")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 5)
    return arguments


def main() -> None:
    arguments = read_arguments()
    if arguments.busy:
        # llama.cpp's threads wait for each other awake, and take the core from the one that is waited for.
        os.environ["OMP_WAIT_POLICY"] = "passive"
    with TemporaryDirectory(prefix="ouzel-bench-") as temporary:
        scratch = arguments.scratch or Path(temporary)
        found = [each for bits in arguments.bits for each in run_bits(arguments, scratch, bits)]
    section = "\n".join([header(sys.argv[1:]), "", *(table.markdown() for table, _ in found)])
    print(section)
    if arguments.write:
        document = BENCHMARKS / "RESULTS.md"
        document.write_text(with_section(document.read_text(), section))
    print(json.dumps({table.title: measured.json() for table, measured in found}))


if __name__ == "__main__":
    main()
