"""Reads /metrics by the rules of an endpoint picker of the Gateway API (llm-d's router).

The picker scrapes twenty times a second, keeps the families that it knows (`_wanted_lines`:
filter.go), and reads them with the text parser of Prometheus' Go library, which takes all of them
or nothing. It takes one series of each family (spec.go): the first, because Ouzel's series have no
timestamps. For adapters it takes the series with the greatest value, the first of equals
(loraspec.go). It ignores labels when it chooses, so with several engines it sees the first.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

WAITING = "vllm:num_requests_waiting"
RUNNING = "vllm:num_requests_running"
KV_CACHE = "vllm:kv_cache_usage_perc"
CACHE_SHAPE = "vllm:cache_config_info"
ADAPTERS = "vllm:lora_requests_info"
NAMES = (WAITING, RUNNING, KV_CACHE, CACHE_SHAPE, ADAPTERS)

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)",?')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


@dataclass(frozen=True)
class Series:
    labels: dict[str, str]
    value: float


@dataclass
class Family:
    kind: str = ""
    series: list[Series] = field(default_factory=list)


@dataclass(frozen=True)
class EndpointReading:
    """The picker's record of a server; its scorers use nothing else."""

    num_waiting: int
    num_running: int
    kv_cache_usage: float
    block_size: int
    num_blocks: int
    running_adapters: frozenset[str]
    waiting_adapters: frozenset[str]
    max_adapters: int


def read_endpoint(exposition: str) -> EndpointReading:
    """Reads the text of /metrics.

    Fails where the picker would log an error and go on with its last record.
    """
    families = read_families("".join(_wanted_lines(exposition)))
    shape = _first(families[CACHE_SHAPE]).labels
    adapters = max(families[ADAPTERS].series, key=lambda series: series.value).labels
    return EndpointReading(
        num_waiting=int(_first(families[WAITING]).value),
        num_running=int(_first(families[RUNNING]).value),
        kv_cache_usage=_first(families[KV_CACHE]).value,
        block_size=int(shape["block_size"]),
        num_blocks=int(shape["num_gpu_blocks"]),
        running_adapters=_names(adapters["running_lora_adapters"]),
        waiting_adapters=_names(adapters["waiting_lora_adapters"]),
        max_adapters=int(adapters["max_lora"]),
    )


def _first(family: Family) -> Series:
    assert family.kind in ("gauge", "counter"), "of other kinds it takes 0"
    return family.series[0]


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def _wanted_lines(exposition: str) -> Iterator[str]:
    """Yields the lines that the picker keeps.

    The name of a sample's family decides if the header before it names this family, else the name
    of the sample.
    """
    family = ""
    for line in exposition.splitlines(keepends=True):
        if line.startswith("# "):
            _, _, family, *_ = line.split(maxsplit=3)
            name = family
        else:
            name = re.split(r"[{\s]", line, maxsplit=1)[0]
            if name not in (family, *(family + suffix for suffix in ("_bucket", "_sum", "_count"))):
                family = ""
        if (family or name) in NAMES:
            yield line


def read_families(exposition: str) -> dict[str, Family]:
    """Raises where Prometheus' text parser for Go would refuse the whole text."""
    assert exposition.endswith("\n"), "unexpected end of input stream"
    families: dict[str, Family] = {}
    helped = set()
    for line in exposition.splitlines():
        if line.startswith("# HELP "):
            name = line.split(maxsplit=3)[2]
            assert name not in helped, f"second HELP line for {name}"
            helped.add(name)
        elif line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert name not in families, (
                f"second TYPE line for {name}, or TYPE reported after samples"
            )
            assert kind in ("counter", "gauge", "histogram", "summary", "untyped"), (
                f"unknown metric type {kind}"
            )
            families[name] = Family(kind)
        else:
            name, series = _read_sample(line)
            families.setdefault(_family_name(name, families), Family()).series.append(series)
    return families


def _family_name(name: str, families: dict[str, Family]) -> str:
    for suffix in ("_bucket", "_sum", "_count"):
        stem = name.removesuffix(suffix)
        if stem != name and stem in families and families[stem].kind == "histogram":
            return stem
    return name


def _read_sample(line: str) -> tuple[str, Series]:
    name = _NAME.match(line)
    assert name, f"invalid metric name in {line!r}"
    rest, labels = line[name.end() :], {}
    if rest.startswith("{"):
        rest = rest[1:]
        while not rest.startswith("}"):
            label = _LABEL.match(rest)
            assert label, f"expected a label in {rest!r}"
            assert label[1] not in labels, f"duplicate label names in {line!r}"
            labels[label[1]] = re.sub(r'\\["\\n]', lambda match: _ESCAPES[match[0]], label[2])
            rest = rest[label.end() :]
        rest = rest[1:]
    value, *timestamp = rest.split()
    assert not timestamp, "with timestamps the newest series would count"
    return name[0], Series(labels, float(value))
