"""Fields that clients know and an endpoint does not honour are refused, unless they ask for nothing.

Those of our other endpoints are among them: each is honoured, or refused, wherever it is sent.
"""

from collections.abc import Collection, Mapping

from ouzel.errors import InvalidRequest
from ouzel.wire.validation_errors import shown

# By field: the values that ask for nothing. null never asks.
NEUTRAL_VALUES: Mapping[str, tuple[object, ...]] = {
    "access_programs": (),
    "adapter_id": ("",),
    "adapters": ("", []),
    "add_generation_prompt": (),
    "assistant_confidence_threshold": (),
    "audio": (),
    "background": (False,),
    "bad_words_ids": ([],),
    "cached_prompt": (),
    "chat_template": (),
    "chat_template_kwargs": ({},),
    "chunk_frames": (),
    "context": ([],),
    "context_management": (),
    "continue_final_message": (False,),
    "conversation": (),
    "custom_logit_processor": (),
    "decoder_input_details": (False,),
    "details": (False,),
    "detokenize": (True,),
    "documents": ([],),
    "dry_multiplier": (0,),
    "dynatemp_range": (0,),
    "ebnf": (),
    "echo": (False,),
    "enable_thinking": (),
    "enable_tool_guided_generation": (False,),
    "encoder_repetition_penalty": (1,),
    "epsilon_cutoff": (0,),
    "eta_cutoff": (0,),
    "force_words_ids": ([],),
    "format": (),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "grammar": (),
    "guided_decoding_backend": (),
    "guided_whitespace_pattern": (),
    "include": ([],),
    "image": (),
    "include_reasoning": (True,),
    "input": (),
    "inputs": (),
    "instructions": (),
    "items": (),
    "json_schema": (),
    "kv_transfer_params": ({},),
    "logits_processors": ([],),
    "logprob_token_ids": (),
    "lora_path": (),
    "max_length": (),
    "max_ngram_size": (),
    "max_tool_calls": (),
    "messages": (),
    "min_length": (0, 1),
    "mirostat": (0,),
    "mm_processor_kwargs": ({},),
    "modalities": (["text"],),
    "moderation": (),
    "n_probs": (0,),
    "no_stop_trim": (False,),
    "num_assistant_tokens": (),
    "options": (),
    "output_formatter": (),
    "pad_to_max_length": (False,),
    "padding_side": (),
    "parallel_tool_calls": (True, False),
    "parameters": ({},),
    "penalty_alpha": (0,),
    "personality": (),
    "prediction": (),
    "previous_response_id": (),
    "prompt": (),
    "prompt_cache_options": (),
    "prompt_cache_retention": ("in_memory", "in-memory"),
    "prompt_embeds": (),
    "prompt_logprobs": (),
    "reasoning": (),
    "reasoning_effort": (),
    "regex": (),
    "repetition_detection": (),
    "return_full_text": (False,),
    "return_hidden_states": (False,),
    "return_token_ids": (False,),
    "return_token_strs": (False,),
    "samplers": (),
    "separate_reasoning": (True,),
    "service_tier": ("auto", "default"),
    "session_params": (),
    "stop_regex": ([],),
    "store": (False,),
    "structural_tag": (),
    "suffix": ("",),
    "suppress_tokens": ([],),
    "text": (),
    "tfs_z": (1,),
    "think": (),
    "thinking": (),
    "tokens": (),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_a": (0,),
    "top_logprobs": (0,),
    "top_n_sigma": (-1,),
    "top_n_tokens": (0,),
    "truncate": (),
    "truncate_prompt_tokens": (),
    "truncation": ("disabled",),
    "truncation_side": (),
    "verbosity": ("medium",),
    "vllm_xargs": ({},),
    "watermark": (False,),
    "web_search_options": (),
    "xtc_probability": (0,),
}

# By field: the one that we have for it.
INSTEAD: Mapping[str, str] = {
    "decoder_input_details": "prompt_logprobs",
    "details": "logprobs",
    "input": "messages or prompt",
    "inputs": "messages or prompt",
    "instructions": "messages",
    "items": "input, messages or prompt",
    "max_length": "max_tokens",
    "messages": "prompt, or /chat/completions",
    "min_length": "min_tokens",
    "n_probs": "logprobs",
    "no_stop_trim": "include_stop_str_in_output",
    "prompt": "messages, or /completions",
    "return_full_text": "echo",
    "text": "messages or prompt",
    "think": "reasoning_effort",
    "top_logprobs": "logprobs",
    "top_n_tokens": "logprobs",
    "truncate": "truncate_prompt_tokens",
    "truncate_prompt_tokens": "max_length",
}


def refuse_unsupported(body: Mapping[str, object], *, own_fields: Collection[str]) -> None:
    """`own_fields` are those that the endpoint does honour."""
    for name, value in body.items():
        if name in own_fields or name not in NEUTRAL_VALUES or value is None or value in NEUTRAL_VALUES[name]:
            continue
        raise InvalidRequest(f"is not supported yet by this server{_hint(name)}, given {shown(value)}", field=name)


def _hint(name: str) -> str:
    if name in INSTEAD:
        return f" (use {INSTEAD[name]})"
    neutral = NEUTRAL_VALUES[name]
    return f" (only {' or '.join(shown(value) for value in neutral)})" if neutral else ""
