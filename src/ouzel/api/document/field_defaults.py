"""Describes the defaults of fields in words, for the OpenAPI document and the table of fields."""

from collections.abc import Mapping

import msgspec

from ouzel.generation.sampling_values import DEFAULT_TEMPERATURE, DEFAULT_TOP_K
from ouzel.sampling import SamplingParams

# Defaults of fields that are neither sampling parameters with a default nor booleans that are
# false.
_DEFAULTS: Mapping[str, str] = {
    "temperature": f"{DEFAULT_TEMPERATURE}; 0.0 in /audio",
    "top_k": f"{DEFAULT_TOP_K}, all when temperature is 0",
    "seed": "random",
    "stop_token_ids": "none",
    "logit_bias": "none",
    "allowed_token_ids": "all",
    "bad_words": "none",
    "do_sample": "whether temperature is above 0",
    "n": "1",
    "num_return_sequences": "n",
    "best_of": "n",
    "use_beam_search": "whether num_beams is above 1",
    "num_beams": "best_of with use_beam_search, else 1",
    "num_beam_groups": "1",
    "diversity_penalty": "0.0",
    "length_penalty": "1.0",
    "early_stopping": "false",
    "max_tokens": "the model's own, else as many as fit in max_model_len; 16 in completions",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_completion_tokens, max_tokens, or as many as fit in max_model_len",
    "truncation": "disabled",
    "verbosity": "medium",
    "top_logprobs": "0",
    "skip_special_tokens": "true; false in /detokenize",
    "spaces_between_special_tokens": "true",
    "add_generation_prompt": "true; in /embeddings as the model's files say, else false",
    "add_special_tokens": "true for texts, false for chats",
    "padding_side": "right",
    "truncation_side": "left",
    "chat_template": "the model's",
    "enable_thinking": "the chat template's",
    "thinking": "the chat template's",
    "include_reasoning": "true",
    "separate_reasoning": "true",
    "reasoning_format": "auto",
    "num_assistant_tokens": "as many as make the answer faster",
    "max_ngram_size": "the longest match",
    "priority": "0",
    "parallel_tool_calls": "true",
    "enable_tool_guided_generation": "the server's",
}


def describe_default(name: str, *, is_boolean: bool) -> str:
    sampling = {field.name: field.default for field in msgspec.structs.fields(SamplingParams)}
    if name in _DEFAULTS:
        return _DEFAULTS[name]
    default = sampling.get(name, False if is_boolean else None)
    return "none" if default in (None, msgspec.NODEFAULT) else msgspec.json.encode(default).decode()
