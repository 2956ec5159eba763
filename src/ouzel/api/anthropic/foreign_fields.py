"""Refuses or ignores fields that /v1/messages does not support.

These are Anthropic's fields for missing features, and fields of our other APIs. A field that would
change the answer is refused; others are ignored with a log line. Fields of other servers are
handled where all bodies are decoded.
"""

import logging
from collections.abc import Collection, Mapping

from ouzel.errors import InvalidRequest
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject
from ouzel.wire.hints import HINTS
from ouzel.wire.unsupported import NEUTRAL_VALUES
from ouzel.wire.validation_errors import show_value

logger = logging.getLogger(__name__)

_UNSUPPORTED = frozenset({"compaction", "container"})
# hints in our other APIs
_HINTS = frozenset({"prompt_cache_key", "safety_identifier", "stream_options", "user"})
_CHAT_FIELDS = (
    frozenset(ChatCompletionRequest.__struct_encode_fields__)
    - NEUTRAL_VALUES.keys()
    - HINTS.keys()
    - _HINTS
)
_NEUTRAL_ANYWHERE: tuple[object, ...] = (None, False, [], {}, "")
# neutral values of fields with other neutral values
_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    **dict.fromkeys(
        ("best_of", "n", "num_beams", "num_beam_groups", "num_return_sequences"), (None, 1)
    ),
    **dict.fromkeys(("skip_special_tokens", "spaces_between_special_tokens"), (None, True)),
    "max_completion_tokens": (None,),
    "parallel_tool_calls": (None, True),
    "thinking_token_budget": (None, -1),
}
_INSTEAD: Mapping[str, str] = {
    "max_completion_tokens": "max_tokens",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    "thinking_token_budget": "thinking.budget_tokens",
    "stop": "stop_sequences",
    **dict.fromkeys(
        ("guided_json", "response_format", "structured_outputs"), "output_config.format"
    ),
}


def drop_foreign_fields(fields: JsonObject, own_fields: Collection[str]) -> JsonObject:
    """Removes foreign fields. Raises InvalidRequest for a foreign field with an effect."""
    foreign = (_UNSUPPORTED | _CHAT_FIELDS | _NEUTRAL.keys()) - set(own_fields)
    for name in sorted(foreign & fields.keys()):
        value = fields[name]
        if value not in _NEUTRAL.get(name, _NEUTRAL_ANYWHERE):
            hint = f" (use {_INSTEAD[name]})" if name in _INSTEAD else ""
            raise InvalidRequest(
                f"is not supported here{hint}, given {show_value(value)}", field=name
            )
    hints = sorted(name for name in _HINTS & fields.keys() if fields[name] is not None)
    if hints:
        logger.info("accepted without effect: %s", ", ".join(hints))
    return {name: value for name, value in fields.items() if name not in foreign | _HINTS}
