"""Counts the requests of an engine: times, tokens and finish reasons."""

from collections.abc import Mapping

from ouzel.observability.series import Counter, Histogram

SECONDS_TO_TOKEN = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1,
    2.5,
    5,
    7.5,
    10,
    20,
    40,
    80,
)
SECONDS_BETWEEN_TOKENS = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1,
    2.5,
    5,
    10,
    20,
)
SECONDS_OF_REQUEST = (
    0.1,
    0.3,
    0.5,
    0.8,
    1,
    1.5,
    2,
    2.5,
    5,
    10,
    15,
    20,
    30,
    40,
    50,
    60,
    120,
    240,
    480,
    960,
)
NUM_CHOICES = (1, 2, 5, 10, 20)
NUM_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)


class RequestSeries:
    """Counts the requests of one engine, and the same in `total`, the series of the whole model."""

    def __init__(self, labels: Mapping[str, str], total: "RequestSeries | None" = None) -> None:
        self.families: dict[str, Counter | Histogram] = {}  # keyed by the stem of the name
        self._labels = labels
        self._total = total
        self._ttft = self._histogram(
            "time_to_first_token_seconds", SECONDS_TO_TOKEN, "Arrival to first token."
        )
        self._itl = self._histogram(
            "inter_token_latency_seconds",
            SECONDS_BETWEEN_TOKENS,
            "Between the outputs of one choice.",
        )
        self._e2e = self._histogram(
            "e2e_request_latency_seconds", SECONDS_OF_REQUEST, "Arrival to last token."
        )
        self._queue = self._histogram(
            "request_queue_time_seconds", SECONDS_OF_REQUEST, "Waiting in the engine."
        )
        self._prefill = self._histogram(
            "request_prefill_time_seconds", SECONDS_OF_REQUEST, "Computing the prompt."
        )
        self._decode = self._histogram(
            "request_decode_time_seconds", SECONDS_OF_REQUEST, "First token to last."
        )
        self._inference = self._histogram(
            "request_inference_time_seconds", SECONDS_OF_REQUEST, "Prefill and decode."
        )
        self._time_per_token = self._histogram(
            "request_time_per_output_token_seconds",
            SECONDS_BETWEEN_TOKENS,
            "Mean over the choices of a request.",
        )
        self._params_n = self._histogram("request_params_n", NUM_CHOICES, "Choices asked for.")
        self._params_max_tokens = self._histogram(
            "request_params_max_tokens", NUM_TOKENS, "Limit of generated tokens."
        )
        self._prompt_len = self._histogram(
            "request_prompt_tokens", NUM_TOKENS, "Prompt tokens of a request."
        )
        self._output_len = self._histogram(
            "request_generation_tokens", NUM_TOKENS, "Generated tokens of a request."
        )
        self._prompt_tokens = self._counter("prompt_tokens", "Prompt tokens.")
        self._cached_tokens = self._counter(
            "prompt_tokens_cached", "Prompt tokens taken from the prefix cache."
        )
        self._generation_tokens = self._counter("generation_tokens", "Generated tokens.")
        self._aborts = self._counter(
            "num_aborts", "Choices that ended early because the client went away."
        )
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
        """Counts an ended choice; `reason` is a finish reason, also `abort` or `error`."""
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
        """Observes times and lengths of a request that ended without an abort or a failure."""
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

    def _histogram(self, stem: str, bounds: tuple[float, ...], documentation: str) -> Histogram:
        total = None if self._total is None else self._total.families[stem]
        assert total is None or isinstance(total, Histogram)
        histogram = self.families[stem] = Histogram(documentation, self._labels, bounds, total)
        return histogram

    def _counter(self, stem: str, documentation: str, *, label: str = "") -> Counter:
        total = None if self._total is None else self._total.families[stem]
        assert total is None or isinstance(total, Counter)
        counter = self.families[stem] = Counter(documentation, self._labels, label, total)
        return counter
