"""Fields that clients know and we do not honour yet: refused, unless they ask for nothing."""

from collections.abc import Collection, Mapping

from ouzel.api.validation_errors import shown
from ouzel.errors import InvalidRequest

# By field: the values that ask for nothing. null never asks.
NEUTRAL_VALUES: Mapping[str, tuple[object, ...]] = {
    "assistant_confidence_threshold": (),
    "audio": (),
    "bad_words": ([],),
    "best_of": (1,),
    "chat_template": (),
    "continue_final_message": (False,),
    "diversity_penalty": (0,),
    "documents": ([],),
    "early_stopping": (False,),
    "echo": (False,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "guided_choice": (),
    "guided_grammar": (),
    "guided_json": (),
    "guided_regex": (),
    "length_penalty": (1,),
    "logits_processors": ([],),
    "max_ngram_size": (),
    "modalities": (["text"],),
    "num_assistant_tokens": (),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "prompt_logprobs": (),
    "response_format": ({"type": "text"},),
    "return_token_ids": (False,),
    "return_tokens_as_token_ids": (False,),
    "service_tier": ("auto", "default"),
    "spaces_between_special_tokens": (True,),
    "store": (False,),
    "structured_outputs": (),
    "suffix": ("",),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "truncate_prompt_tokens": (),
    "typical_p": (1,),
    "use_beam_search": (False,),
    "verbosity": ("medium",),
    "web_search_options": (),
}


def refuse_unsupported(given: Mapping[str, object], *, known: Collection[str]) -> None:
    """`known` are the fields that the endpoint does honour."""
    for name, value in given.items():
        if name in known or name not in NEUTRAL_VALUES or value is None or value in NEUTRAL_VALUES[name]:
            continue
        raise InvalidRequest(f"{name} is not supported yet by this server, given {shown(value)}", param=name)
