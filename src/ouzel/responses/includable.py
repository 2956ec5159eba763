"""Lists the names that the field `include` accepts: optional parts of a response."""

import logging
from collections.abc import Iterable
from typing import Literal, get_args

from ouzel.errors import InvalidRequest
from ouzel.wire.validation_errors import show_value

logger = logging.getLogger(__name__)

Shown = Literal["message.output_text.logprobs", "reasoning.encrypted_content"]
# Parts of items of tools; each tool reads its own names.
ShownByTools = Literal[
    "web_search_call.action.sources",
    "file_search_call.results",
    "code_interpreter_call.outputs",
]
AlwaysShown = Literal["message.input_image.image_url"]
# Outputs of tools that this server does not run; agents ask every server for these.
NeverPresent = Literal[
    "computer_call_output.output.image_url",
    "web_search_call.results",
]
Includable = Shown | ShownByTools | AlwaysShown | NeverPresent

LOGPROBS: Shown = "message.output_text.logprobs"
ENCRYPTED_REASONING: Shown = "reasoning.encrypted_content"
INCLUDABLE: tuple[str, ...] = tuple(
    name for names in (Shown, ShownByTools, AlwaysShown, NeverPresent) for name in get_args(names)
)


def check_includable(name: str, path: str) -> None:
    if name not in INCLUDABLE:
        raise InvalidRequest(
            f"must be one of {', '.join(INCLUDABLE)}, given {show_value(name)}", field=path
        )


def log_never_present(names: Iterable[str]) -> None:
    never_there = sorted(set(names) & set(get_args(NeverPresent)))
    if never_there:
        logger.info(
            "ignored values of include: %s, which this server never produces",
            ", ".join(never_there),
        )
