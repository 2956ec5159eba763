"""A server logs with the id of the request in scope, and counts: metrics are named functions.

Every metric is `ouzel_<stem>`. The stems that vLLM also has are exposed a second time as `vllm:<stem>`, from the
same samples, so that dashboards and autoscalers made for vLLM work as they are.
"""

import logging
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

request_id_in_scope: ContextVar[str] = ContextVar("request_id", default="-")

SECONDS_TO_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
SECONDS_BETWEEN_TOKENS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 10, 20)
SECONDS_OF_REQUEST = (0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960)
NUM_CHOICES = (1, 2, 5, 10, 20)
NUM_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)

STEMS_OF_VLLM = frozenset(
    {
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
        "prefix_cache_queries",
        "prefix_cache_hits",
        "time_to_first_token_seconds",
        "inter_token_latency_seconds",
        "e2e_request_latency_seconds",
        "request_queue_time_seconds",
        "request_prefill_time_seconds",
        "request_decode_time_seconds",
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
        "cache_config_info",
    }
)


def configure_logging(level: str) -> None:
    """Puts one handler on the `ouzel` logger; every line names the request it belongs to."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"))
    handler.addFilter(_add_request_id)
    logger = logging.getLogger("ouzel")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(level.upper())


def _add_request_id(record: logging.LogRecord) -> bool:
    record.request_id = request_id_in_scope.get()
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReading:
    """A scrape reads this off the engine; it is zeros before its first step."""

    num_restarts: int
    block_size: int
    num_blocks: int
    num_running: int = 0
    num_waiting: int = 0
    num_used_blocks: int = 0
    num_prefix_query_tokens: int = 0
    num_prefix_hit_tokens: int = 0
    num_preemptions: int = 0


class Metrics:
    """They are what one server counted for one model, in a registry of its own: two in one process do not mix."""

    def __init__(self, model_name: str) -> None:
        self._model_name = model_name
        self._registry = CollectorRegistry()
        self._ttft = self._histogram("time_to_first_token_seconds", SECONDS_TO_TOKEN, "Arrival to first token.")
        self._itl = self._histogram(
            "inter_token_latency_seconds", SECONDS_BETWEEN_TOKENS, "Between the outputs of one choice."
        )
        self._e2e = self._histogram("e2e_request_latency_seconds", SECONDS_OF_REQUEST, "Arrival to last token.")
        self._queue = self._histogram("request_queue_time_seconds", SECONDS_OF_REQUEST, "Waiting in the engine.")
        self._prefill = self._histogram("request_prefill_time_seconds", SECONDS_OF_REQUEST, "Computing the prompt.")
        self._decode = self._histogram("request_decode_time_seconds", SECONDS_OF_REQUEST, "First token to last.")
        self._time_per_token = self._histogram(
            "request_time_per_output_token_seconds", SECONDS_BETWEEN_TOKENS, "Mean over the choices of a request."
        )
        self._params_n = self._histogram("request_params_n", NUM_CHOICES, "Choices asked for.")
        self._params_max_tokens = self._histogram("request_params_max_tokens", NUM_TOKENS, "Limit of generated tokens.")
        self._prompt_len = self._histogram("request_prompt_tokens", NUM_TOKENS, "Prompt tokens of a request.")
        self._output_len = self._histogram("request_generation_tokens", NUM_TOKENS, "Generated tokens of a request.")
        self._prompt_tokens = self._counter("prompt_tokens", "Prompt tokens.")
        self._cached_tokens = self._counter("prompt_tokens_cached", "Prompt tokens taken from the prefix cache.")
        self._generation_tokens = self._counter("generation_tokens", "Generated tokens.")
        self._refused = self._counter("requests_refused", "Requests refused with 429.")
        self._aborts = self._counter("num_aborts", "Choices that ended early because the client went away.")
        self._success = Counter(
            "ouzel_request_success", "Ended choices.", ("model_name", "finished_reason"), registry=self._registry
        )

    def first_token(self, seconds: float) -> None:
        """Counts the time from a request's arrival to its first token."""
        self._ttft.observe(seconds)

    def prompt_computed(self, *, num_prompt_tokens: int, num_cached_tokens: int) -> None:
        self._prompt_tokens.inc(num_prompt_tokens)
        self._cached_tokens.inc(num_cached_tokens)

    def next_token(self, seconds: float) -> None:
        self._itl.observe(seconds)

    def tokens_generated(self, num_tokens: int) -> None:
        self._generation_tokens.inc(num_tokens)

    def choice_finished(self, reason: str) -> None:
        """`reason` is a finish reason; `abort` and `error` count too."""
        self._success.labels(self._model_name, reason).inc()
        if reason == "abort":
            self._aborts.inc()

    def request_completed(
        self,
        *,
        e2e_s: float,
        queue_s: float,
        prefill_s: float,
        decode_s: float,
        token_s: float,
        num_prompt_tokens: int,
        num_generated_tokens: int,
        n: int,
        max_tokens: int,
    ) -> None:
        """Counts a request all of whose choices came to an end of their own."""
        self._e2e.observe(e2e_s)
        self._queue.observe(queue_s)
        self._prefill.observe(prefill_s)
        self._decode.observe(decode_s)
        self._time_per_token.observe(token_s)
        self._prompt_len.observe(num_prompt_tokens)
        self._output_len.observe(num_generated_tokens)
        self._params_n.observe(n)
        self._params_max_tokens.observe(max_tokens)

    def request_refused(self) -> None:
        self._refused.inc()

    def exposition(self, engine: EngineReading) -> bytes:
        """Returns everything in Prometheus' text format, under our names and then under vLLM's."""
        families = [*self._registry.collect(), *_engine_families(engine, self._model_name)]
        aliases = [_under_vllm_name(family) for family in families if _stem(family) in STEMS_OF_VLLM]
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collected([*families, *aliases]))
        return generate_latest(registry)

    def _histogram(self, stem: str, buckets: tuple[float, ...], documentation: str) -> Histogram:
        family = Histogram(f"ouzel_{stem}", documentation, ("model_name",), buckets=buckets, registry=self._registry)
        return family.labels(self._model_name)

    def _counter(self, stem: str, documentation: str) -> Counter:
        family = Counter(f"ouzel_{stem}", documentation, ("model_name",), registry=self._registry)
        return family.labels(self._model_name)


class _Collected(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _engine_families(engine: EngineReading, model_name: str) -> list[Metric]:
    families: list[Metric] = []

    def gauge(stem: str, documentation: str, value: float, **labels: str) -> None:
        labels = {"model_name": model_name, **labels}
        family = GaugeMetricFamily(f"ouzel_{stem}", documentation, labels=tuple(labels))
        family.add_metric(tuple(labels.values()), value)
        families.append(family)

    def counter(stem: str, documentation: str, value: float) -> None:
        family = CounterMetricFamily(f"ouzel_{stem}", documentation, labels=("model_name",))
        family.add_metric((model_name,), value)
        families.append(family)

    used_share = engine.num_used_blocks / max(engine.num_blocks, 1)
    sizes = {"block_size": str(engine.block_size), "num_gpu_blocks": str(engine.num_blocks)}  # vLLM's labels
    gauge("num_requests_running", "Sequences in the batch.", engine.num_running)
    gauge("num_requests_waiting", "Sequences waiting for the batch.", engine.num_waiting)
    gauge("kv_cache_usage_perc", "Used share of the KV blocks, 0 to 1.", used_share)
    gauge("cache_config_info", "Shape of the KV cache.", 1, **sizes)
    counter("prefix_cache_queries", "Prompt tokens looked up.", engine.num_prefix_query_tokens)
    counter("prefix_cache_hits", "Prompt tokens found in the prefix cache.", engine.num_prefix_hit_tokens)
    counter("num_preemptions", "Sequences sent back to waiting.", engine.num_preemptions)
    counter("engine_restarts", "Times the engine was started again after it died.", engine.num_restarts)
    return families


def _stem(family: Metric) -> str:
    return family.name.removeprefix("ouzel_")


def _under_vllm_name(family: Metric) -> Metric:
    alias = Metric(f"vllm:{_stem(family)}", family.documentation, family.type)
    alias.samples = [sample._replace(name=f"vllm:{sample.name.removeprefix('ouzel_')}") for sample in family.samples]
    return alias
