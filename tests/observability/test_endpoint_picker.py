"""Endpoint pickers of the Gateway API find their metrics on /metrics, one series of each."""

from dataclasses import replace

import pytest

from ouzel.observability import EngineReading, Metrics, exposition
from tests.observability.endpoint_picker import NAMES, EndpointReading, read_endpoint, read_families

READING = EngineReading(
    num_restarts=0,
    step_age_s=0,
    block_size=32,
    num_blocks=200,
    num_running=3,
    num_waiting=2,
    num_used_blocks=50,
)


def page(*engines: EngineReading, model_name: str = "demo") -> str:
    return exposition([(Metrics(model_name), engines or (READING,))])


@pytest.mark.parametrize("model_name", ["demo", 'a "model", of {100%} \\ and\na line'])
def test_it_reads_what_the_server_does(model_name: str) -> None:
    assert read_endpoint(page(model_name=model_name)) == EndpointReading(
        num_waiting=2,
        num_running=3,
        kv_cache_usage=0.25,
        block_size=32,
        num_blocks=200,
        running_adapters=frozenset(),
        waiting_adapters=frozenset(),
        max_adapters=0,
    )


def test_each_is_one_series_as_of_several_it_sees_the_first() -> None:
    found = read_families(page(READING, READING))

    assert {name: (found[name].kind, len(found[name].series)) for name in NAMES} == dict.fromkeys(
        NAMES, ("gauge", 1)
    )


def test_all_else_on_the_page_is_read_too() -> None:
    """Pickers that look for more read the whole page, and one line that cannot be read loses it."""
    found = read_families(page(READING, READING))

    assert all(family.kind for family in found.values())
    assert {
        series.labels["model_name"] for family in found.values() for series in family.series
    } == {"demo"}


def test_use_of_the_kv_cache_is_a_share() -> None:
    full = replace(READING, num_used_blocks=READING.num_blocks)

    assert read_endpoint(page(full)).kv_cache_usage == 1.0


def test_several_engines_are_one_server_for_it() -> None:
    busy = replace(READING, num_running=8, num_waiting=5, num_used_blocks=150)

    read = read_endpoint(page(READING, busy))

    assert (read.num_running, read.num_waiting, read.kv_cache_usage, read.num_blocks) == (
        11,
        7,
        0.5,
        400,
    )


def test_of_several_series_it_takes_the_first_and_of_adapters_the_newest() -> None:
    first = page()
    second = first.replace('engine="0"', 'engine="1"').replace("} 2", "} 9")
    lines = [
        line
        for line in second.splitlines(keepends=True)
        if line.startswith("vllm:num_requests_waiting")
    ]
    lora = (
        'vllm:lora_requests_info{max_lora="4",running_lora_adapters="a, '
        'b",waiting_lora_adapters="c"} 9e12\n'
    )

    read = read_endpoint(first + "".join(lines) + lora)

    assert read.num_waiting == 2
    assert (read.running_adapters, read.waiting_adapters) == (frozenset("ab"), frozenset("c"))
    assert read.max_adapters == 4
