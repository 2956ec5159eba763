"""Renders small chats with each switch of reasoning, which shows the marks that a template writes.

The source of a template may compose a mark from pieces; a rendered chat has it in one piece.
"""

import time
from collections.abc import Mapping

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.messages import Message
from ouzel.prompts.template_environment import MAX_CPU_S
from ouzel.prompts.template_trials.capabilities import REASONING_KEYS

_SWITCHES: tuple[Mapping[str, object], ...] = (
    {},
    {"enable_thinking": True},
    {"enable_thinking": False},
    {"thinking": True},
    {"thinking": False},
    {"reasoning_effort": "high"},
)
_USER: Message = {"role": "user", "content": "hello"}
_ANSWER: Message = {
    "role": "assistant",
    "content": "hello",
    **dict.fromkeys(REASONING_KEYS, "well"),
}


def render_switched_chats(template: ChatTemplate) -> str:
    """Returns the texts of all chats that the template does not refuse."""
    ends_at = time.thread_time() + MAX_CPU_S  # limits all chats together
    texts: list[str] = []
    for variables in _SWITCHES:
        for messages in ([_USER], [_USER, _ANSWER]):
            left_s = ends_at - time.thread_time()
            if left_s <= 0:
                return "\n".join(texts)
            try:
                texts.append(template.render(messages, variables=variables, max_cpu_s=left_s))
            except InvalidRequest:
                continue
    return "\n".join(texts)
