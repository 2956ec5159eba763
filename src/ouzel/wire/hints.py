"""Accepts hints: fields that change no answer of this server. The log names them."""

import logging
from collections.abc import Collection, Mapping

logger = logging.getLogger(__name__)

# Maps each field to the reason why the server ignores it.
HINTS: Mapping[str, str] = {
    "adaptive_decay": "it changes adaptive_target",
    "billing_policy": "nothing is billed",
    "cache_prompt": "--prefix-caching decides",
    "conversation_id": "there is nothing to route",
    "custom_labels": "metrics have none",
    "data_parallel_rank": "there is nothing to route",
    "diagnostics": "the prefix cache tells no reasons",
    "dry_allowed_length": "it changes dry_multiplier",
    "dry_base": "it changes dry_multiplier",
    "dry_penalty_last_n": "it changes dry_multiplier",
    "dry_sequence_breakers": "it changes dry_multiplier",
    "dynatemp_exponent": "it changes dynatemp_range",
    "fallback_credit_token": "nothing is billed",
    "fallbacks": "there is one model, which refuses nothing",
    "id_slot": "there are no slots",
    "keep_alive": "the model stays loaded",
    "log_metrics": "all requests are counted",
    "mirostat_eta": "it changes mirostat",
    "mirostat_tau": "it changes mirostat",
    "models": "there is one model",
    "n_cache_reuse": "full blocks are reused",
    "n_discard": "a context is never shifted",
    "n_keep": "a context is never shifted",
    "prediction": "only chat completions read it",
    "prompt_cache_options": "the prefix cache decides",
    "prompt_cache_retention": "the prefix cache decides",
    "provider": "there is nothing to route",
    "request_id": "ids are the server's own, or X-Request-Id",
    "return_progress": "progress is not shown",
    "rid": "ids are the server's own, or X-Request-Id",
    "route": "there is nothing to route",
    "routed_dp_rank": "there is nothing to route",
    "routing_key": "there is nothing to route",
    "service_tier": "all requests are served alike",
    "session_id": "there is nothing to route",
    "store": "only responses and chats are stored",
    "timings_per_token": "timings are in /metrics",
    "ttl": "the model stays loaded",
    "user_profile_id": "nothing is billed",
    "verbosity": "only the prompt can ask for it",
    "xtc_threshold": "it changes xtc_probability",
}


def log_hints(body: Mapping[str, object], own_fields: Collection[str]) -> None:
    """Logs the hints in `body`, except null, false and the endpoint's `own_fields`."""
    asking = [
        name
        for name in body
        if name in HINTS and name not in own_fields and body[name] not in (None, False)
    ]
    if asking:
        logger.info(
            "taken as hints: %s", ", ".join(f"{name} ({HINTS[name]})" for name in sorted(asking))
        )
