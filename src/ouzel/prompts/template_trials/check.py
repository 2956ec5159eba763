"""Warns at load about a chat template whose control tokens would be encoded as ordinary text."""

import logging
from collections.abc import Sequence

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.messages import Message
from ouzel.prompts.spellings import Spellings
from ouzel.prompts.template_trials import capabilities as template_capabilities

_logger = logging.getLogger(__name__)


def check_marks(template: ChatTemplate, marking: ChatTemplate, control_tokens: Spellings) -> None:
    """Renders the probe's chats with both templates and logs a warning if the results differ.

    `marking` is `template` with stand-ins. The chats spell no control token.
    """
    lost, has_changed = set[str](), False

    def render(
        messages: Sequence[Message],
        tools: list[dict[str, object]] | None = None,
        enable_thinking: bool | None = None,
    ) -> str | None:
        nonlocal has_changed
        variables = {} if enable_thinking is None else {"enable_thinking": enable_thinking}
        try:
            text = template.render(messages, tools=tools, variables=variables)
        except InvalidRequest:
            return None
        try:
            marked = marking.write_chat([*messages], tools=tools, variables=variables)
        except InvalidRequest:
            has_changed = True
            return text
        has_changed = has_changed or marked.text != text
        own = set(marked.spans)
        lost.update(text[slice(*span)] for span in control_tokens.spans(text) if span not in own)
        return text

    template_capabilities.probe(render)
    if lost:
        _logger.warning(
            "the control tokens %s of the chat template are encoded as text",
            ", ".join(sorted(lost)),
        )
    if has_changed:
        _logger.warning("the chat template renders differently when its control tokens are marked")
