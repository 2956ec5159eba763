"""Metrics are named functions, and one text for who scrapes them.

Every metric is `ouzel_<stem>`. Those that vLLM also has are written a second time under its names, of its newest
versions and of those that routers in use read, so that dashboards, autoscalers and routers work as they are.
"""

from collections.abc import Iterator, Sequence

from ouzel.observability.engine_reading import EngineReading, families_of, total
from ouzel.observability.request_series import RequestSeries
from ouzel.observability.series import Counter

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
} | {  # and their names before vLLM 0.9
    "kv_cache_usage_perc": ("kv_cache_usage_perc", "gpu_cache_usage_perc"),
    "prefix_cache_queries": ("prefix_cache_queries", "gpu_prefix_cache_queries"),
    "prefix_cache_hits": ("prefix_cache_hits", "gpu_prefix_cache_hits"),
}


class Metrics:
    """They are what one server counted for one model, by engine; two in one process do not mix."""

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

    def of_engine(self, number: int) -> RequestSeries:
        return self._engines[number]

    def request_refused(self) -> None:
        self._refused.inc()

    def families(self, engines: Sequence[EngineReading]) -> Iterator[tuple[str, str]]:
        """Without engines, as of an adapter, only what requests have counted.

        Gives everything in Prometheus' text format, as pairs of a family's name and text: under our names, and then
        under vLLM's, where a pool of engines is one, as those take it who read these.
        """
        own = families_of(
            [
                (self._labels | {"engine": str(number)}, reading)
                for number, reading in enumerate(engines)
            ]
        )
        for stem in self._total.families:
            texts = [series.families[stem].text(f"ouzel_{stem}") for series in self._engines]
            yield f"ouzel_{stem}", "".join([texts[0], *map(_samples, texts[1:])])
        yield "ouzel_requests_refused", self._refused.text("ouzel_requests_refused")
        for stem, family in own.items():
            yield f"ouzel_{stem}", family.text(f"ouzel_{stem}")
        together = self._total.families | (
            families_of([(self._labels, total(engines))]) if engines else {}
        )
        for stem, names in NAMES_OF_VLLM.items():
            for name in names if stem in together else ():
                yield f"vllm:{name}", together[stem].text(f"vllm:{name}")


def exposition(models: Sequence[tuple[Metrics, Sequence[EngineReading]]]) -> str:
    """Returns the metrics of all models and their engines; a family's samples stand together."""
    texts: dict[str, str] = {}
    for metrics, engines in models:
        for name, text in metrics.families(engines):
            texts[name] = texts[name] + _samples(text) if name in texts else text
    return "".join(texts.values())


def _samples(family: str) -> str:
    """Leaves out the two lines that say what a family is."""
    return family.split("\n", 2)[2]
