"""Compares Ouzel with OpenVINO GenAI and llama.cpp: in turns, in one run, on the same random
weights.

usage: uv run --group bench python -m benchmarks.compare [--quick] [--write]
           [--llama-cpp-bin DIR] [--scratch DIR]

Each product is alone in a process. In every round all products do the same workload one after the
other, in an order that rotates. The program prints tokens per second as medians of the rounds; a
ratio is Ouzel's rate over the other rate in the same round. With --write the tables replace the
shape's section of RESULTS.md, and the picture of that page is drawn again. The last line is JSON.
comparison/workloads.py has the workloads; comparison/checkpoints.py describes the model, whose
answers can be copies of its prompt.

Ouzel proposes tokens in columns of their own, and only in the rows of copies: by prompt lookup and,
with --draft, by a draft model. All products are in memory at once: about 7 GB for qwen3-0.6b, more
than 24 GB for qwen3-4b in 8 bits. A smaller machine compares in two runs: first --without GenAI,
then --without llama.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any  # JSON

from benchmarks.comparison.preparation import ComparisonOptions, Prepared, prepare_files
from benchmarks.comparison.product import Contender, NotAvailable
from benchmarks.comparison.report import Table, section_marks, with_section
from benchmarks.comparison.rounds import Measured, Run, Workers, compare, measure
from benchmarks.comparison.servers import ask, http_rows, llama_server, ouzel_server
from benchmarks.comparison.workers import Machine
from benchmarks.comparison.workloads import full_rows, quick_rows
from benchmarks.picture import RESULTS, write_picture

OUR_SERVER, THEIR_SERVER, BARE_LOOP = "Ouzel's server", "llama-server", "Ouzel's bare loop"
PACKAGES = ("openvino", "openvino-genai", "llama-cpp-python")


def run_bits(
    arguments: argparse.Namespace, scratch: Path, bits: Any
) -> list[tuple[Table, Measured]]:
    """Compares all products with weights of `bits` bits, and over HTTP as well for 8 bits."""
    comparison = ComparisonOptions(
        scratch, arguments.shape, bits, arguments.threads, arguments.draft
    )
    files = prepare_files(comparison)
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
    table = Table(title, found.columns(), found.rows, found.notes)
    tables = [(table, found)]
    if bits == 8 and arguments.http:
        served = compare_over_http(files, machine, arguments)
        tables.append(
            (Table(f"{title}, through HTTP", served.columns(), served.rows, served.notes), served)
        )
    return tables


def _is_wanted(name: str, only: list[str]) -> bool:
    return not only or any(part in name for part in only)


def compare_over_http(files: Prepared, machine: Machine, arguments: argparse.Namespace) -> Measured:
    """Compares Ouzel's server with llama-server, and with Ouzel's engine without HTTP."""
    by_product: dict[str, Contender] = {}
    for contender in files.contenders:
        by_product.setdefault(contender.product, contender)
    ours, theirs = by_product["ouzel"], by_product.get("llama.cpp")
    found = Measured(dict.fromkeys((OUR_SERVER, THEIR_SERVER, BARE_LOOP), OUR_SERVER))
    workers = Workers(machine)
    rows = http_rows(16 if arguments.quick else 64)
    with ExitStack() as stack:
        url = stack.enter_context(ouzel_server(ours.model, ours.weights, machine))
        runs: dict[str, Run] = {OUR_SERVER: partial(ask, url)}
        try:
            if theirs is None:
                raise NotAvailable("llama-server: not available (there is no file for it)")
            max_len = max(row.prompt_len + row.output_len for row in rows.values()) + 64
            server = llama_server(arguments.llama_cpp_bin, theirs.model, max_len, machine)
            runs[THEIR_SERVER] = partial(ask, stack.enter_context(server))
        except NotAvailable as error:
            found.notes.append(str(error))
        runs[BARE_LOOP] = workers.load_run(ours)
        stack.callback(workers.close)
        for name, workload in rows.items():
            measure(runs, workload, arguments.rounds, found, name)
    found.notes.append(
        "the ratio beside the bare loop is what HTTP and a process boundary leave of its rate"
    )
    return found


def header(arguments: list[str]) -> str:
    """Returns a line with the command, the date, the commit, the versions and the machine."""
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
        help="size of the KV cache of Ouzel and GenAI; llama.cpp chooses its own",
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
    parser.add_argument(
        "--write",
        action="store_true",
        help="renew the shape's section of RESULTS.md and its picture",
    )
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 5)
    return arguments


def main() -> None:
    arguments = read_arguments()
    if arguments.busy:
        # llama.cpp's threads wait for each other awake, and take cores from the threads that work.
        os.environ["OMP_WAIT_POLICY"] = "passive"
    with TemporaryDirectory(prefix="ouzel-bench-") as temporary:
        scratch = arguments.scratch or Path(temporary)
        found = [each for bits in arguments.bits for each in run_bits(arguments, scratch, bits)]
    section = "\n".join([header(sys.argv[1:]), "", *(table.markdown() for table, _ in found)])
    print(section)
    if arguments.write:
        begin, end = section_marks(arguments.shape)
        RESULTS.write_text(with_section(RESULTS.read_text(), section, begin=begin, end=end))
        write_picture()
    print(json.dumps({table.title: measured.json() for table, measured in found}))


if __name__ == "__main__":
    main()
