"""Fields that this door does not honour: those of Anthropic's that need what is not here, and those of our other doors.

What would change the answer is refused; what would not is taken, and named in the log. Other servers' fields are looked
after where all bodies are decoded.
"""

import logging
from collections.abc import Collection, Mapping

from ouzel.errors import InvalidRequest
from ouzel.wire.chat_request import ChatCompletionRequest
from ouzel.wire.decode import JsonObject
from ouzel.wire.hints import HINTS
from ouzel.wire.unsupported import NEUTRAL_VALUES
from ouzel.wire.validation_errors import shown

logger = logging.getLogger(__name__)

_UNSUPPORTED = frozenset({"compaction", "container"})
_HINTS = frozenset(
    {"prompt_cache_key", "safety_identifier", "stream_options", "user"}
)  # of our other doors
_OF_CHATS = (
    frozenset(ChatCompletionRequest.__struct_encode_fields__)
    - NEUTRAL_VALUES.keys()
    - HINTS.keys()
    - _HINTS
)
_ASK_FOR_NOTHING: tuple[object, ...] = (None, False, [], {}, "")
_NEUTRAL: Mapping[
    str, tuple[object, ...]
] = {  # of fields where these, or 0, would ask for something
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


def without_foreign_fields(fields: JsonObject, own_fields: Collection[str]) -> JsonObject:
    """Raises InvalidRequest for a field that asks for something that is not here."""
    foreign = (_UNSUPPORTED | _OF_CHATS | _NEUTRAL.keys()) - set(own_fields)
    for name in sorted(foreign & fields.keys()):
        value = fields[name]
        if value not in _NEUTRAL.get(name, _ASK_FOR_NOTHING):
            hint = f" (use {_INSTEAD[name]})" if name in _INSTEAD else ""
            raise InvalidRequest(f"is not supported here{hint}, given {shown(value)}", field=name)
    hints = sorted(name for name in _HINTS & fields.keys() if fields[name] is not None)
    if hints:
        logger.info("taken, and not used: %s", ", ".join(hints))
    return {name: value for name, value in fields.items() if name not in foreign | _HINTS}
