"""Prometheus, dashboards made for vLLM, and routers can read /metrics."""

from dataclasses import replace

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from ouzel.observability import EngineReading, Metrics, exposition

READING = EngineReading(
    num_restarts=1,
    step_age_s=0.5,
    block_size=32,
    num_blocks=100,
    num_running=3,
    num_waiting=2,
    num_used_blocks=25,
    num_state_slots=80,
    num_used_state_slots=20,
    num_prefix_query_tokens=40,
    num_prefix_hit_tokens=30,
    num_drafts=7,
    num_draft_tokens=20,
    num_accepted_tokens=15,
)
NAMES_OF_ROUTERS = (
    "vllm:num_requests_waiting",
    "vllm:num_requests_running",
    "vllm:kv_cache_usage_perc",
    "vllm:cache_config_info",
    "vllm:lora_requests_info",
    "vllm:gpu_cache_usage_perc",
    "vllm:gpu_prefix_cache_hits",
    "vllm:gpu_prefix_cache_queries",
)


def families(metrics: Metrics) -> dict[str, Metric]:
    found = list(text_string_to_metric_families(exposition([(metrics, [READING])])))
    by_name = {family.name: family for family in found}
    assert len(by_name) == len(found)
    return by_name


def test_histogram_counts_what_is_at_most_a_bound() -> None:
    metrics = Metrics("demo")
    for seconds in (0.001, 0.002, 1000.0):
        metrics.of_engine(0).first_token(seconds)

    family = families(metrics)["ouzel_time_to_first_token_seconds"]
    by_bound = {
        sample.labels["le"]: sample.value
        for sample in family.samples
        if sample.name.endswith("_bucket")
    }
    others = {
        sample.name.rpartition("_")[2]: sample.value
        for sample in family.samples
        if "le" not in sample.labels
    }

    assert (by_bound["0.001"], by_bound["0.005"], by_bound["80.0"], by_bound["+Inf"]) == (
        1,
        2,
        2,
        3,
    )
    assert others == {"count": 3, "sum": pytest.approx(1000.003)}


def test_counter_has_a_line_for_each_reason_seen() -> None:
    metrics = Metrics("demo")
    for reason in ("stop", "length", "stop"):
        metrics.of_engine(0).choice_finished(reason)

    samples = families(metrics)["vllm:request_success"].samples
    assert {sample.labels["finished_reason"]: sample.value for sample in samples} == {
        "stop": 2,
        "length": 1,
    }


OF_THE_HTTP_PROCESS = {
    "ouzel_requests_refused",
    "ouzel_tool_calls",
    "ouzel_tool_calls_failed",
    "ouzel_tool_call_seconds",
}


def test_every_series_names_model_and_engine() -> None:
    name = 'a "model" of 100%s \\ and\na line'

    for family in families(Metrics(name)).values():
        if family.name in OF_THE_HTTP_PROCESS:
            continue
        assert {
            (sample.labels["model_name"], sample.labels["engine"]) for sample in family.samples
        } <= {(name, "0")}


def test_routers_find_what_they_ask_for() -> None:
    found = families(Metrics("demo"))

    values = {name: found[name].samples[0].value for name in NAMES_OF_ROUTERS}
    assert values | {"vllm:lora_requests_info": 0} == dict(
        zip(NAMES_OF_ROUTERS, (2, 3, 0.25, 1, 0, 0.25, 30, 40), strict=True)
    )
    shape = found["vllm:cache_config_info"].samples[0].labels
    assert (shape["block_size"], shape["num_gpu_blocks"]) == ("32", "100")


def test_what_speculation_counts_has_the_names_of_vllm() -> None:
    found = families(Metrics("demo"))

    stems = (
        "spec_decode_num_drafts",
        "spec_decode_num_draft_tokens",
        "spec_decode_num_accepted_tokens",
    )
    samples = [found[f"vllm:{stem}"].samples[0] for stem in stems]
    assert [sample.name for sample in samples] == [f"vllm:{stem}_total" for stem in stems]
    assert [sample.value for sample in samples] == [7, 20, 15]


def test_requests_are_counted_by_engine_and_together_under_names_of_vllm() -> None:
    metrics = Metrics("demo", num_engines=2)
    metrics.of_engine(0).next_token(0.2)
    metrics.of_engine(1).next_token(0.3)
    metrics.of_engine(1).choice_finished("stop")

    page = exposition([(metrics, [READING, READING])])
    by_name = {family.name: family.samples for family in text_string_to_metric_families(page)}

    def counted(name: str) -> list[tuple[str, float]]:
        samples = (sample for sample in by_name[name] if sample.name.endswith(("_count", "_total")))
        return [(sample.labels["engine"], sample.value) for sample in samples]

    assert counted("ouzel_inter_token_latency_seconds") == [("0", 1), ("1", 1)]
    assert counted("vllm:inter_token_latency_seconds") == [("0", 2)]
    assert counted("ouzel_request_success") == [("1", 1)]
    assert counted("vllm:request_success") == [("0", 1)]


def test_names_of_vllm_say_the_same_as_ours() -> None:
    metrics = Metrics("demo")
    metrics.of_engine(0).next_token(0.2)
    found = families(metrics)

    for name, family in found.items():
        ours = found.get(name.replace("vllm:", "ouzel_"))
        if ours is not None and "lora" not in name:
            assert [(s.labels, s.value) for s in family.samples] == [
                (s.labels, s.value) for s in ours.samples
            ]


def test_routers_read_which_adapters_are_in_use() -> None:
    reading = replace(
        READING, max_loras=4, running_adapters=frozenset("ba"), waiting_adapters=frozenset("c")
    )
    other = replace(READING, max_loras=4, running_adapters=frozenset("d"))
    found = {
        family.name: family
        for family in text_string_to_metric_families(exposition([(Metrics("m"), [reading, other])]))
    }
    [sample] = found["vllm:lora_requests_info"].samples
    labels = {
        name: sample.labels[name]
        for name in ("max_lora", "running_lora_adapters", "waiting_lora_adapters")
    }
    assert labels == {
        "max_lora": "4",
        "running_lora_adapters": "a,b,d",
        "waiting_lora_adapters": "c",
    }
    assert [
        each.labels["running_lora_adapters"] for each in found["ouzel_lora_requests_info"].samples
    ] == ["a,b", "d"]
