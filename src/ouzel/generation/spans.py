"""Collects the attributes of a generation's span: figures and times.

Names follow OpenTelemetry's conventions for generative AI, and vLLM where there are none.
"""

import time

from ouzel.generation.successive import AnyGeneration
from ouzel.observability import Attributes


def collect_span_attributes(generation: AnyGeneration) -> Attributes:
    """Returns the attributes that are known so far."""
    request, timing, usage = generation.request, generation.timing, generation.usage()
    params, ttft_s = request.params, generation.ttft_s
    attributes: dict[str, str | int | float | list[str]] = {
        "gen_ai.operation.name": "text_completion" if request.continues_prompt else "chat",
        "gen_ai.provider.name": "ouzel",
        "gen_ai.request.model": generation.model_name,
        "gen_ai.response.model": generation.model_name,
        "gen_ai.response.id": request.request_id,
        "gen_ai.request.max_tokens": params.max_tokens,
        "gen_ai.request.temperature": params.temperature,
        "gen_ai.request.top_p": params.top_p,
        "gen_ai.request.n": request.n,
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.latency.e2e": time.perf_counter() - request.arrival_s,
    }
    if generation.finish_reasons:
        attributes["gen_ai.response.finish_reasons"] = generation.finish_reasons
    if ttft_s is not None:
        attributes["gen_ai.latency.time_to_first_token"] = ttft_s
    if timing is not None:
        attributes["gen_ai.latency.time_in_queue"] = timing.queue_s
        attributes["gen_ai.latency.time_in_model_prefill"] = timing.prefill_s
    return attributes
