"""Metrics are named functions, and one text for who scrapes them.

Every metric is `ouzel_<stem>`. Those that vLLM also has are written a second time under its names, of its newest
versions and of those that routers in use read, so that dashboards, autoscalers and routers work as they are.
"""

import time
from dataclasses import dataclass

from ouzel.observability.series import Counter, Histogram, Kind, family_text

SECONDS_TO_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
SECONDS_BETWEEN_TOKENS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 10, 20)
SECONDS_OF_REQUEST = (0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960)
NUM_CHOICES = (1, 2, 5, 10, 20)
NUM_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReading:
    """A scrape reads this off the engine; it is zeros before its first step."""

    num_restarts: int
    step_age_s: float
    block_size: int
    num_blocks: int
    num_running: int = 0
    num_waiting: int = 0
    num_used_blocks: int = 0
    num_state_slots: int = 0
    num_used_state_slots: int = 0
    num_prefix_query_tokens: int = 0
    num_prefix_hit_tokens: int = 0
    num_preemptions: int = 0
    num_images_encoded: int = 0
    num_image_hits: int = 0
    num_drafts: int = 0
    num_draft_tokens: int = 0
    num_accepted_tokens: int = 0
    encoding_s: float = 0.0
    num_store_bytes: int = 0
    num_store_written: int = 0
    num_store_loaded: int = 0
    num_store_damaged: int = 0
    num_store_skipped: int = 0


class Metrics:
    """They are what one server counted for one model; two in one process do not mix."""

    def __init__(self, model_name: str) -> None:
        self._labels = {"engine": "0", "model_name": model_name}
        self._families: dict[str, Counter | Histogram] = {}  # by stem
        self._ttft = self._histogram("time_to_first_token_seconds", SECONDS_TO_TOKEN, "Arrival to first token.")
        self._itl = self._histogram(
            "inter_token_latency_seconds", SECONDS_BETWEEN_TOKENS, "Between the outputs of one choice."
        )
        self._e2e = self._histogram("e2e_request_latency_seconds", SECONDS_OF_REQUEST, "Arrival to last token.")
        self._queue = self._histogram("request_queue_time_seconds", SECONDS_OF_REQUEST, "Waiting in the engine.")
        self._prefill = self._histogram("request_prefill_time_seconds", SECONDS_OF_REQUEST, "Computing the prompt.")
        self._decode = self._histogram("request_decode_time_seconds", SECONDS_OF_REQUEST, "First token to last.")
        self._inference = self._histogram("request_inference_time_seconds", SECONDS_OF_REQUEST, "Prefill and decode.")
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
        self._success = self._counter("request_success", "Ended choices.", label="finished_reason")

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
        self._success.inc(value=reason)
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
        self._inference.observe(prefill_s + decode_s)
        self._time_per_token.observe(token_s)
        self._prompt_len.observe(num_prompt_tokens)
        self._output_len.observe(num_generated_tokens)
        self._params_n.observe(n)
        self._params_max_tokens.observe(max_tokens)

    def request_refused(self) -> None:
        self._refused.inc()

    def exposition(self, engine: EngineReading) -> str:
        """Returns everything in Prometheus' text format, under our names and then under vLLM's."""
        families = self._families | _families_of(engine, self._labels)
        texts = [family.text(f"ouzel_{stem}") for stem, family in families.items()]
        for stem, names in NAMES_OF_VLLM.items():
            texts += [families[stem].text(f"vllm:{name}") for name in names]
        return "".join(texts)

    def _histogram(self, stem: str, bounds: tuple[float, ...], documentation: str) -> Histogram:
        histogram = self._families[stem] = Histogram(documentation, self._labels, bounds)
        return histogram

    def _counter(self, stem: str, documentation: str, *, label: str = "") -> Counter:
        counter = self._families[stem] = Counter(documentation, self._labels, label)
        return counter


@dataclass(frozen=True, slots=True)
class _Reading:
    """One number of the engine's, as it is at the time of the scrape."""

    kind: Kind
    documentation: str
    labels: dict[str, str]
    value: float

    def text(self, name: str) -> str:
        suffix = "_total" if self.kind == "counter" else ""
        return family_text(name, self.kind, self.documentation, [(suffix, self.labels, self.value)])


def _families_of(engine: EngineReading, labels: dict[str, str]) -> dict[str, _Reading]:
    sizes = {"block_size": str(engine.block_size), "num_gpu_blocks": str(engine.num_blocks)}  # vLLM's labels
    adapters = {"max_lora": "0", "running_lora_adapters": "", "waiting_lora_adapters": ""}
    used_share = engine.num_used_blocks / max(engine.num_blocks, 1)
    used_states = engine.num_used_state_slots / max(engine.num_state_slots, 1)

    def gauge(documentation: str, value: float, further: dict[str, str] | None = None) -> _Reading:
        return _Reading("gauge", documentation, labels | (further or {}), value)

    def counter(documentation: str, value: float) -> _Reading:
        return _Reading("counter", documentation, labels, value)

    return {
        "num_requests_running": gauge("Sequences in the batch.", engine.num_running),
        "num_requests_waiting": gauge("Sequences waiting for the batch.", engine.num_waiting),
        "kv_cache_usage_perc": gauge("Used share of the KV blocks, 0 to 1.", used_share),
        "state_slots_usage_perc": gauge("Used share of the slots for recurrent states, kept ones too.", used_states),
        "cache_config_info": gauge("Shape of the KV cache.", 1, sizes),
        "lora_requests_info": gauge("Adapters in use, as routers ask for them; the time.", time.time(), adapters),
        "prefix_cache_queries": counter("Prompt tokens looked up.", engine.num_prefix_query_tokens),
        "prefix_cache_hits": counter("Prompt tokens found in the prefix cache.", engine.num_prefix_hit_tokens),
        "prefix_store_bytes": gauge("Bytes of records in the prefix cache directory.", engine.num_store_bytes),
        "prefix_store_written": counter("Blocks and states that were written to it.", engine.num_store_written),
        "prefix_store_loaded": counter("Blocks and states that were taken from it.", engine.num_store_loaded),
        "prefix_store_damaged": counter("Records of it that were dropped as damaged.", engine.num_store_damaged),
        "prefix_store_skipped": counter("Blocks and states that it was too slow for.", engine.num_store_skipped),
        "num_preemptions": counter("Sequences sent back to waiting.", engine.num_preemptions),
        "spec_decode_num_drafts": counter("Sequences, of each step, that had tokens proposed.", engine.num_drafts),
        "spec_decode_num_draft_tokens": counter("Tokens proposed.", engine.num_draft_tokens),
        "spec_decode_num_accepted_tokens": counter("Proposed tokens that came.", engine.num_accepted_tokens),
        "images_encoded": counter("Images that the vision encoder computed.", engine.num_images_encoded),
        "image_hits": counter("Images of requests that were kept, encoded or in the KV cache.", engine.num_image_hits),
        "image_encoding_seconds": counter("Time that the vision encoder took.", engine.encoding_s),
        "engine_step_age_seconds": gauge("Time the engine has been at its present step.", engine.step_age_s),
        "engine_restarts": counter("Times the engine was started again after it died.", engine.num_restarts),
    }
