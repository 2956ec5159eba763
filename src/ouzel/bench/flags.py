"""Reads the options of `ouzel bench` itself, and checks that they go together."""

import argparse
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # JSON, and values of argparse

from ouzel.bench.endpoints import CHAT, ENDPOINTS, Endpoint
from ouzel.bench.lengths import Fixed, Lengths, read_lengths
from ouzel.bench.load import Load
from ouzel.bench.workloads import Workload
from ouzel.options.invalid_option import InvalidOption
from ouzel.terminal.one_line_parser import OneLineParser

_USAGE = """ouzel bench [MODEL] [options]
       ouzel bench --url URL [options]
       ouzel bench --compare A.json B.json [--report FILE.html]"""
_DESCRIPTION = """\
Measures how fast a model answers: the model of a server with the OpenAI API (--url), or a MODEL in
this process. For the latter, the options of `ouzel serve` for models and engines are accepted too
(`ouzel serve --help`)."""
_UNLIMITED = "inf"
_INPUT_LEN, _OUTPUT_LEN = Fixed(128), Fixed(64)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep makes one run for each value."""

    is_of_rates: bool  # the values are request rates; else they are numbers of requests at once
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BenchFlags:
    """The values of the options, given or by default."""

    url: str = ""
    api_key: str = ""
    ca_file: str = ""
    insecure: bool = False
    model: str = ""
    endpoint: Endpoint = CHAT
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    workload: Workload = Workload.RANDOM
    dataset: str = ""
    num_prompts: int | None = None
    input_len: Lengths = _INPUT_LEN
    output_len: Lengths = _OUTPUT_LEN
    prefix_len: int = 256
    num_prefixes: int = 1
    turns: int = 4
    seed: int = 0
    warmup: int = 1
    max_concurrency: float | None = None  # infinity: no limit
    request_rate: float = float("inf")
    burstiness: float = 1.0
    sweep: Sweep | None = None
    goodput: tuple[str, ...] = ()
    save: str = ""
    report: str = ""
    compare: tuple[str, ...] = ()

    def loads(self) -> tuple[Load, ...]:
        """Returns the load of each run; by default one load with 8 requests at a time."""
        limit = self.max_concurrency
        if self.sweep is None:
            if limit is None and self.request_rate == float("inf"):
                limit = 8
            return (Load(self.request_rate, self.burstiness, _limit(limit)),)
        if self.sweep.is_of_rates:
            return tuple(Load(rate, self.burstiness, _limit(limit)) for rate in self.sweep.values)
        return tuple(
            Load(self.request_rate, self.burstiness, int(value)) for value in self.sweep.values
        )


def _limit(max_concurrency: float | None) -> int | None:
    if max_concurrency is None or max_concurrency == float("inf"):
        return None
    return int(max_concurrency)


def read_bench_flags(arguments: Sequence[str]) -> tuple[BenchFlags, list[str]]:
    """Returns the options of bench, and the other arguments: MODEL and the options of serve.

    Raises InvalidOption, and SystemExit after --help.
    """
    namespace, rest = bench_parser().parse_known_args(arguments)
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in vars(namespace).items()
    }
    flags = BenchFlags(**given)
    _check(flags, given, rest)
    return flags, rest


def bench_flags() -> list[str]:
    """Returns the names of all flags, for suggestions."""
    actions = bench_parser()._actions  # argparse has no public way to list them
    return [flag for action in actions for flag in action.option_strings]


def _check(flags: BenchFlags, given: Mapping[str, object], rest: Sequence[str]) -> None:
    """Raises InvalidOption for options that do not go together."""

    def refuse(names: Sequence[str], reason: str, *, unless: bool) -> None:
        for name in names:
            if name in given and not unless:
                raise InvalidOption(f"--{name.replace('_', '-')}: {reason}")

    if flags.compare:
        refuse(
            sorted(given.keys() - {"compare", "report"}),
            "cannot be used with --compare, which measures nothing",
            unless=False,
        )
        if rest:
            raise InvalidOption(
                f"--compare: takes two files and --report only, given also {rest[0]!r}"
            )
    refuse(("api_key", "ca_file", "insecure", "model"), "needs --url", unless=bool(flags.url))
    refuse(("ca_file",), "has no effect with --insecure", unless=not flags.insecure)
    refuse(
        ("input_len", "workload"),
        "cannot be used with --dataset, which has the prompts",
        unless=not flags.dataset,
    )
    has_prefixes = flags.workload is Workload.SHARED_PREFIX
    refuse(("prefix_len", "num_prefixes"), "needs --workload shared-prefix", unless=has_prefixes)
    refuse(("turns",), "needs --workload multi-turn", unless=flags.workload is Workload.MULTI_TURN)
    has_tools = flags.workload is Workload.TOOLS
    refuse(
        ("workload",),
        "tools cannot be used with --endpoint completions",
        unless=not (has_tools and flags.endpoint.name == "completions"),
    )
    sweeps_rates = flags.sweep is not None and flags.sweep.is_of_rates
    has_rates = sweeps_rates or "request_rate" in given
    refuse(("burstiness",), "needs --request-rate or --sweep rate:...", unless=has_rates)
    refuse(("request_rate",), "cannot be used with --sweep rate:...", unless=not sweeps_rates)
    sweeps_limits = flags.sweep is not None and not sweeps_rates
    refuse(
        ("max_concurrency",),
        "cannot be used with --sweep concurrency:...",
        unless=not sweeps_limits,
    )
    _check_files(flags, given)


def _check_files(flags: BenchFlags, given: Mapping[str, object]) -> None:
    """Raises InvalidOption for an output file that is not writable or would overwrite an input."""
    needed = {Path(path).resolve(): path for path in (flags.dataset, *flags.compare) if path}
    for name, path in (("save", flags.save), ("report", flags.report)):
        if name not in given:
            continue
        if not _is_writable(Path(path)):
            raise InvalidOption(
                f"--{name}: must be a file in an existing, writable directory, given {path!r}"
            )
        if (other := needed.setdefault(Path(path).resolve(), f"--{name}")) != f"--{name}":
            raise InvalidOption(f"--{name}: must be another file than {other}, given {path!r}")


def _is_writable(path: Path) -> bool:
    if path.exists():
        return not path.is_dir() and os.access(path, os.W_OK)
    return path.parent.is_dir() and os.access(path.parent, os.W_OK)


def bench_parser() -> OneLineParser:
    parser = OneLineParser(
        prog="ouzel bench",
        usage=_USAGE,
        description=_DESCRIPTION,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    _add_target(parser.add_argument_group("Server"))
    _add_prompts(parser.add_argument_group("Prompts"))
    _add_load(parser.add_argument_group("Load"))
    _add_results(parser.add_argument_group("Results"))
    return parser


Group = argparse._ArgumentGroup  # argparse has no public name for the type


def _add_target(group: Group) -> None:
    group.add_argument(
        "--url",
        metavar="URL",
        help="The server: http://localhost:8000/v1, or unix:/path of a socket.",
    )
    group.add_argument(
        "--api-key", metavar="KEY", help="The API key (default: the variable OPENAI_API_KEY)."
    )
    group.add_argument(
        "--ca-file", metavar="FILE", help="Authorities that sign the server's certificate."
    )
    group.add_argument(
        "--insecure", action="store_true", help="Do not check the server's certificate."
    )
    group.add_argument(
        "--model", metavar="NAME", help="The model (default: the first model of the server)."
    )
    group.add_argument(
        "--endpoint",
        type=_choose(ENDPOINTS),
        metavar="NAME",
        help="chat (default), completions or responses.",
    )
    group.add_argument(
        "--extra-body",
        type=_json_object,
        metavar="JSON",
        help="Fields for every request; null removes a field of the benchmark.",
    )


def _add_prompts(group: Group) -> None:
    group.add_argument(
        "--workload",
        type=_choose({each.value: each for each in Workload}),
        metavar="NAME",
        help="random (default), shared-prefix, multi-turn or tools.",
    )
    group.add_argument(
        "--dataset", metavar="FILE", help="JSON lines with prompt or messages, and output_tokens."
    )
    group.add_argument(
        "--num-prompts",
        type=_whole(1),
        metavar="N",
        help="Requests in a run (default: 32, or the number of lines of --dataset).",
    )
    lengths = "N, A:B, uniform(A,B), normal(MEAN,STD) or lognormal(MEAN,STD)"
    group.add_argument(
        "--input-len",
        type=_wrap_errors(read_lengths),
        metavar="LEN",
        help=f"Tokens of a prompt: {lengths} (default: 128).",
    )
    group.add_argument(
        "--output-len",
        type=_wrap_errors(read_lengths),
        metavar="LEN",
        help="Tokens of an answer, in the same forms (default: 64).",
    )
    group.add_argument(
        "--prefix-len",
        type=_whole(1),
        metavar="N",
        help="Tokens of a shared prefix (default: 256).",
    )
    group.add_argument(
        "--num-prefixes",
        type=_whole(1),
        metavar="N",
        help="Number of different shared prefixes (default: 1).",
    )
    group.add_argument(
        "--turns", type=_whole(1), metavar="N", help="Requests in a conversation (default: 4)."
    )
    group.add_argument(
        "--seed", type=_whole(0), metavar="N", help="Random seed of the prompts (default: 0)."
    )
    group.add_argument(
        "--warmup", type=_whole(0), metavar="N", help="Requests before the first run (default: 1)."
    )


def _add_load(group: Group) -> None:
    group.add_argument(
        "--max-concurrency",
        type=_limit_or_none,
        metavar="N",
        help="Most requests at once, or inf (default: 8; inf with a rate).",
    )
    group.add_argument(
        "--request-rate",
        type=_positive,
        metavar="R",
        help="Requests per second, at random intervals.",
    )
    group.add_argument(
        "--burstiness",
        type=_positive,
        metavar="B",
        help="1: a Poisson process (default); lower: bursts; higher: more even.",
    )
    group.add_argument(
        "--sweep",
        type=_wrap_errors(_read_sweep),
        metavar="LOADS",
        help="One run for each load: rate:1,2,4 or concurrency:1,8,32.",
    )


def _add_results(group: Group) -> None:
    group.add_argument(
        "--goodput",
        nargs="+",
        metavar="LIMIT",
        help="Count requests within these limits: ttft:MS, tpot:MS, e2el:MS.",
    )
    group.add_argument(
        "--save",
        metavar="FILE.json",
        help="Save all figures, with the names of `vllm bench serve`.",
    )
    group.add_argument(
        "--report",
        metavar="FILE.html",
        help="Write figures and charts to one file that needs no network.",
    )
    group.add_argument(
        "--compare",
        nargs=2,
        metavar=("A.json", "B.json"),
        help="Compare two saved results.",
    )


def _wrap_errors(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Converts ValueError to ArgumentTypeError, because argparse hides the text of other errors."""

    def read_or_refuse(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read_or_refuse


def _choose(choices: Mapping[str, Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}, given {text!r}")
        return choices[text]

    return _wrap_errors(read)


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) < 10**9:
            raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, given {text!r}")
        return int(text)

    return read


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < 10**6:
        raise argparse.ArgumentTypeError(f"must be a number > 0 and < 1000000, given {text!r}")
    return number


def _limit_or_none(text: str) -> float:
    return float("inf") if text == _UNLIMITED else _whole(1)(text)


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise argparse.ArgumentTypeError(f"must be a JSON object, given {text!r}")
    return content


def _read_sweep(text: str) -> Sweep:
    """Reads the value of --sweep. Raises ValueError."""
    kind, _, listed = text.partition(":")
    if kind not in ("rate", "concurrency") or not listed:
        raise ValueError(f"must be rate:R,R,... or concurrency:N,N,..., given {text!r}")
    read: Callable[[str], float] = _positive if kind == "rate" else _whole(1)
    return Sweep(kind == "rate", tuple(read(value) for value in listed.split(",")))
