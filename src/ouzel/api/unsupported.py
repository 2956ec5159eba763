"""Fields that clients know and we do not honour yet: refused, unless they ask for nothing."""

from collections.abc import Collection, Mapping

from ouzel.api.validation_errors import shown
from ouzel.errors import InvalidRequest

# By field: the values that ask for nothing. null never asks.
NEUTRAL_VALUES: Mapping[str, tuple[object, ...]] = {
    "adapter_id": ("",),
    "add_generation_prompt": (),
    "assistant_confidence_threshold": (),
    "audio": (),
    "cached_prompt": (),
    "chat_template": (),
    "chat_template_kwargs": ({},),
    "chunk_frames": (),
    "continue_final_message": (False,),
    "detokenize": (True,),
    "documents": ([],),
    "ebnf": (),
    "echo": (False,),
    "enable_thinking": (),
    "enable_tool_guided_generation": (False,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "grammar": (),
    "guided_decoding_backend": (),
    "guided_whitespace_pattern": (),
    "include_reasoning": (True,),
    "json_schema": (),
    "kv_transfer_params": ({},),
    "logits_processors": ([],),
    "max_new_tokens": (),
    "max_ngram_size": (),
    "min_length": (0, 1),
    "min_new_tokens": (),
    "mm_processor_kwargs": ({},),
    "modalities": (["text"],),
    "num_assistant_tokens": (),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "prompt_cache_retention": ("in_memory", "in-memory"),
    "reasoning": (),
    "reasoning_effort": (),
    "regex": (),
    "repetition_detection": (),
    "service_tier": ("auto", "default"),
    "stop_regex": ([],),
    "store": (False,),
    "structural_tag": (),
    "suffix": ("",),
    "thinking": (),
    "thinking_token_budget": (),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "verbosity": ("medium",),
    "vllm_xargs": ({},),
    "watermark": (False,),
    "web_search_options": (),
}

# By field: the one that we have for it.
INSTEAD: Mapping[str, str] = {
    "max_new_tokens": "max_tokens",
    "min_length": "min_tokens",
    "min_new_tokens": "min_tokens",
}


def refuse_unsupported(given: Mapping[str, object], *, known: Collection[str]) -> None:
    """`known` are the fields that the endpoint does honour."""
    for name, value in given.items():
        if name in known or name not in NEUTRAL_VALUES or value is None or value in NEUTRAL_VALUES[name]:
            continue
        hint = f" (use {INSTEAD[name]})" if name in INSTEAD else ""
        raise InvalidRequest(f"{name} is not supported yet by this server{hint}, given {shown(value)}", param=name)
