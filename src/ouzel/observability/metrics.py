"""Counts the metrics of a model and writes them in Prometheus' text format.

Every metric is named `ouzel_<stem>`. A metric that vLLM has too is written a second time, under
vLLM's names: the names of the newest version, and the older names that routers read. Dashboards,
autoscalers and routers made for vLLM therefore work without a change.
"""

from collections.abc import Iterator, Sequence

from ouzel.observability.engine_reading import EngineReading, build_families, total
from ouzel.observability.request_series import SECONDS_OF_REQUEST, RequestSeries
from ouzel.observability.series import Counter, Histogram

NAMES_OF_VLLM = {
    stem: (stem,)
    for stem in (
        "num_requests_running",
        "num_requests_waiting",
        "time_to_first_token_seconds",
        "inter_token_latency_seconds",
        "e2e_request_latency_seconds",
        "request_queue_time_seconds",
        "request_prefill_time_seconds",
        "request_decode_time_seconds",
        "request_inference_time_seconds",
        "request_time_per_output_token_seconds",
        "request_params_n",
        "request_params_max_tokens",
        "prompt_tokens",
        "prompt_tokens_cached",
        "generation_tokens",
        "request_prompt_tokens",
        "request_generation_tokens",
        "request_success",
        "num_preemptions",
        "spec_decode_num_drafts",
        "spec_decode_num_draft_tokens",
        "spec_decode_num_accepted_tokens",
        "cache_config_info",
        "lora_requests_info",
    )
} | {  # the second name is the name before vLLM 0.9
    "kv_cache_usage_perc": ("kv_cache_usage_perc", "gpu_cache_usage_perc"),
    "prefix_cache_queries": ("prefix_cache_queries", "gpu_prefix_cache_queries"),
    "prefix_cache_hits": ("prefix_cache_hits", "gpu_prefix_cache_hits"),
}


class Metrics:
    """Counts the metrics of one model by engine; each model of a server has its own object."""

    def __init__(self, model_name: str, num_engines: int = 1) -> None:
        self._labels = {"engine": "0", "model_name": model_name}
        self._total = RequestSeries(self._labels)
        numbers = range(num_engines) if num_engines > 1 else ()
        several = [
            RequestSeries(self._labels | {"engine": str(number)}, self._total) for number in numbers
        ]
        self._engines = several or [self._total]
        self._refused = Counter(
            "Requests refused with 429, by no engine.", {"model_name": model_name}
        )

        self._tool_calls = Counter(
            "Ended calls of tools that this server runs.", {"model_name": model_name}, "tool"
        )
        self._failed_tool_calls = Counter(
            "Failed calls of tools that this server runs.", {"model_name": model_name}, "tool"
        )
        self._tool_call_s = Histogram(
            "Duration of calls of tools that this server runs.",
            {"model_name": model_name},
            SECONDS_OF_REQUEST,
        )

    def of_engine(self, number: int) -> RequestSeries:
        return self._engines[number]

    def request_refused(self) -> None:
        self._refused.inc()

    def tool_called(self, kind: str, *, seconds: float, is_failed: bool) -> None:
        """Counts an ended call of a tool that this server runs; `kind` is the type of the tool."""
        self._tool_calls.inc(value=kind)
        if is_failed:
            self._failed_tool_calls.inc(value=kind)
        self._tool_call_s.observe(seconds)

    def families(self, engines: Sequence[EngineReading]) -> Iterator[tuple[str, str]]:
        """Yields pairs of the name and the text of a family: first `ouzel_…`, then `vllm:…`.

        The families of vLLM have the sums over all engines of a pool, because their readers expect
        one engine. Without `engines`, as for an adapter, only request metrics are written.
        """
        own = build_families(
            [
                (self._labels | {"engine": str(number)}, reading)
                for number, reading in enumerate(engines)
            ]
        )
        for stem in self._total.families:
            texts = [series.families[stem].text(f"ouzel_{stem}") for series in self._engines]
            yield f"ouzel_{stem}", "".join([texts[0], *map(_samples, texts[1:])])
        for name, family_of_model in (
            ("ouzel_requests_refused", self._refused),
            ("ouzel_tool_calls", self._tool_calls),
            ("ouzel_tool_calls_failed", self._failed_tool_calls),
            ("ouzel_tool_call_seconds", self._tool_call_s),
        ):
            yield name, family_of_model.text(name)
        for stem, family in own.items():
            yield f"ouzel_{stem}", family.text(f"ouzel_{stem}")
        sums = build_families([(self._labels, total(engines))]) if engines else {}
        together = self._total.families | sums
        for stem, names in NAMES_OF_VLLM.items():
            if stem in together:
                for name in names:
                    yield f"vllm:{name}", together[stem].text(f"vllm:{name}")


def exposition(models: Sequence[tuple[Metrics, Sequence[EngineReading]]]) -> str:
    """Returns the metrics of all models and engines; the samples of one family stand together."""
    texts: dict[str, str] = {}
    for metrics, engines in models:
        for name, text in metrics.families(engines):
            texts[name] = texts[name] + _samples(text) if name in texts else text
    return "".join(texts.values())


def _samples(family: str) -> str:
    """Removes the first two lines of a family, HELP and TYPE."""
    return family.split("\n", 2)[2]
