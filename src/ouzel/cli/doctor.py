"""`ouzel doctor` reports the machine, its speed, the models that fit, and possible problems."""

import json
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any  # Any: JSON

from ouzel.config.cache_root import cache_root
from ouzel.doctor.address import server_at
from ouzel.doctor.findings import Finding, findings
from ouzel.doctor.fitting import (
    COMMON_MODELS,
    CONTEXT_TOKENS,
    WEIGHT_BYTES,
    Estimate,
    Fit,
    estimates,
)
from ouzel.doctor.software import Disk, Software, is_port_free, read_disk, read_software
from ouzel.machine.free_memory import available_bytes
from ouzel.machine.machine import Memory, Processor, read_memory, read_processor
from ouzel.machine.quantities import format_size
from ouzel.model_store.hub_cache import cache_directory
from ouzel.observability.progress_bar import amount
from ouzel.options.options import read_options
from ouzel.options.store_options import store_parser
from ouzel.serve.command import apply_logging
from ouzel.terminal.one_line_parser import OneLineParser
from ouzel.terminal.progress import progress_shown
from ouzel.terminal.table import table

if TYPE_CHECKING:
    from ouzel.doctor.speed import Speeds

_DESCRIPTION = """\
Reports the hardware of this machine, measures its speed for some seconds, and lists models that
fit. The exit status is 1 if something prevents serving."""
_INDENT = 12
_COLUMNS = 100


@dataclass(frozen=True, slots=True)
class Report:
    processor: Processor
    memory: Memory
    available_bytes: int  # free memory for a server
    software: Software
    disks: tuple[Disk, ...]
    address: str
    is_port_free: bool
    own_server: str  # the Ouzel server that uses the port; empty if there is none
    speeds: "Speeds | None"  # None: not measured, or the measurement failed
    estimates: tuple[Estimate, ...]
    findings: tuple[Finding, ...]


def doctor_parser() -> OneLineParser:
    parser = store_parser("doctor", _DESCRIPTION)
    parser.add_argument(
        "--json", action="store_true", help="write one JSON object, with sizes in bytes"
    )
    parser.add_argument(
        "--no-measuring",
        action="store_true",
        help="skip the measurements of speed, which take seconds",
    )
    return parser


def run(arguments: Sequence[str]) -> int:
    """Prints the report and returns the exit status. Raises OuzelError."""
    values = vars(doctor_parser().parse_args(arguments))
    is_json, is_quick = values.pop("json"), values.pop("no_measuring")
    options = apply_logging(read_options(values | {"log_level": "error"}))
    disks = (
        read_disk("the cache of weights", cache_root(options.model.cache_dir)),
        read_disk("the hub's cache", cache_directory()),
    )
    report = examine(disks, options.server.host, options.server.port, measures=not is_quick)
    sys.stdout.write(json.dumps(_json(report), indent=2) + "\n" if is_json else _text(report))
    return int(any(finding.stops_serving for finding in report.findings))


def examine(disks: tuple[Disk, ...], host: str, port: int, *, measures: bool) -> Report:
    processor, memory = read_processor(), read_memory()
    available = available_bytes()
    speeds, failures = _measured(available) if measures else (None, [])
    address, is_free = f"{host} port {port}", is_port_free(host, port)
    own_server = "" if is_free else server_at(host, port)
    found = findings(
        processor,
        memory,
        available,
        disks,
        speeds,
        address=address,
        is_port_free=is_free,
        own_server=own_server,
    )
    fitting = estimates(
        available, memory.limit or memory.total, speeds.weight_gb_per_s if speeds else 0.0
    )
    return Report(
        processor=processor,
        memory=memory,
        available_bytes=available,
        software=read_software(),
        disks=disks,
        address=address,
        is_port_free=is_free,
        own_server=own_server,
        speeds=speeds,
        estimates=tuple(fitting),
        findings=(*failures, *found),
    )


def _measured(available_bytes: int) -> "tuple[Speeds | None, list[Finding]]":
    try:
        # The import takes half a second, and may itself be the fault that is reported.
        from ouzel.doctor.speed import measure_speeds  # noqa: PLC0415

        with progress_shown():
            return measure_speeds(available_bytes), []
    except (ImportError, RuntimeError, MemoryError) as error:
        reason = (str(error).splitlines() or [repr(error)])[0]
        text = f"OpenVINO cannot multiply matrices on this machine: {reason}"
        return None, [
            Finding(text, "Reinstall openvino, or use another machine.", stops_serving=True)
        ]


def _json(report: Report) -> dict[str, Any]:
    document = asdict(report)
    document["disks"] = [asdict(disk) | {"path": str(disk.path)} for disk in report.disks]
    document["estimates"] = [asdict(each) | {"fit": each.fit.value} for each in report.estimates]
    return document


def _text(report: Report) -> str:
    facts = {
        "processor": _processor(report.processor),
        "features": ", ".join(report.processor.features) or "none for faster matrices",
        "memory": _memory(report),
        "software": _software(report.software),
        "kernels": f"own kernels: {report.software.kernels}",
        "extras": ", ".join(
            f"{name}{'' if there else ' (missing)'}"
            for name, there in report.software.extras.items()
        ),
        "disks": "; ".join(f"{disk.path}: {amount(disk.free_bytes)} free" for disk in report.disks),
        "address": f"{report.address} is {_use(report)}",
        **_speed_facts(report.speeds),
    }
    lines = [_wrapped(f"{name:{_INDENT}}{text}", _INDENT) for name, text in facts.items()]
    return "\n".join([*lines, "", _fitting(report), _findings(report.findings)])


def _use(report: Report) -> str:
    if report.is_port_free:
        return "free"
    return f"in use, by {report.own_server}" if report.own_server else "in use"


def _processor(processor: Processor) -> str:
    physical = (
        f" on {processor.num_physical_cores} physical ones" if processor.num_physical_cores else ""
    )
    nodes = f", {processor.num_numa_nodes} NUMA nodes" if processor.num_numa_nodes > 1 else ""
    cores = f"{processor.num_usable_cores} of {processor.num_cores} cores"
    return f"{processor.name}, {cores}{physical}{nodes}"


def _memory(report: Report) -> str:
    memory = report.memory
    limit = (
        f", of which this container may take {format_size(memory.limit)}"
        if memory.limit is not None
        else ""
    )
    free = format_size(report.available_bytes)
    return f"{format_size(memory.total)}{limit}; {free} are free for a server"


def _software(software: Software) -> str:
    return (
        f"ouzel {software.ouzel}, openvino {software.openvino}, Python {software.python}, "
        f"{software.system}"
    )


def _speed_facts(speeds: "Speeds | None") -> dict[str, str]:
    if speeds is None:
        return {"speeds": "not measured"}
    matrices = ", ".join(
        f"{each.gflops:.0f} in {each.precision}{' (--precision auto)' if each.is_auto else ''}"
        for each in sorted(speeds.matrices, key=lambda each: -each.gflops)
    )
    return {
        "reading": f"{speeds.weight_gb_per_s:.1f} GB/s of weights with all cores, for one token",
        "multiplying": f"GFLOP/s of a prompt's matrices: {matrices}",
    }


def _fitting(report: Report) -> str:
    heads = ["MODEL", "AS"] + [head for width in WEIGHT_BYTES for head in (width, "TOKENS/S")]
    rows = []
    for model in COMMON_MODELS:
        own = [each for each in report.estimates if each.model is model]
        cells = [cell for each in own for cell in (_needed(each), _rate(each))]
        rows.append([model.size, model.example, *cells])
    note = (
        f"Memory of models with {CONTEXT_TOKENS} tokens of context, and tokens/s of one user. "
        "The speeds are estimates and upper bounds: the measured speed of reading weights, divided "
        "by the weights of a token. (free): fits if memory is freed; -: does not fit."
    )
    return _wrapped(note, 0) + "\n\n" + table(heads, rows, right=heads[2:])


def _needed(estimate: Estimate) -> str:
    size = f"{estimate.needed_bytes / 2**30:.3g} GiB"
    return (
        size
        if estimate.fit is Fit.YES
        else f"{size} (free)"
        if estimate.fit is Fit.IF_FREED
        else "-"
    )


def _rate(estimate: Estimate) -> str:
    return (
        f"{estimate.tokens_per_s:.2g}"
        if estimate.fit is not Fit.NO and estimate.tokens_per_s
        else "-"
    )


def _findings(found: Sequence[Finding]) -> str:
    if not found:
        return "No problems found.\n"
    return "".join(f"{_wrapped(f'* {each.text} {each.advice}', 2)}\n" for each in found)


def _wrapped(text: str, indent: int) -> str:
    return textwrap.fill(text, _COLUMNS, subsequent_indent=" " * indent, break_on_hyphens=False)
