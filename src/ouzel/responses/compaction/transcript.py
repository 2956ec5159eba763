"""Writes a chat as one text, which a model reads and summarises instead of continuing it.

One text works with every chat template: a template may refuse some roles, tool calls or orders of
messages, but it cannot refuse words in a user message.
"""

from collections.abc import Sequence
from typing import cast

from ouzel.responses.item_fields import Message
from ouzel.responses.items.message_content import join_texts

_INSTRUCTION = (
    "Summarise the conversation above for somebody who has to go on with it, and who will read "
    "your summary instead. Say what the user wants and has decided, what the assistant has "
    "answered and done, what was called and what came of it, and what is still open. Keep names, "
    "numbers and other facts exactly. Leave reasoning and courtesies out. "
    "Write in the language of the conversation. Write the summary only."
)
_BEFORE = "<summary_of_what_was_before>\n{summary}\n</summary_of_what_was_before>\n\n"
_CONVERSATION = "<conversation>\n{entries}\n</conversation>\n\n"
_WITH_BEFORE = " What was before is part of the conversation: the summary is of both."


def summary_prompt(entries: Sequence[str], before: str) -> str:
    """Returns the prompt that asks for a summary of the entries.

    `before` is the summary of earlier entries; it is empty if the entries are the first.
    """
    conversation = _CONVERSATION.format(entries="\n\n".join(entries))
    if not before:
        return conversation + _INSTRUCTION
    return _BEFORE.format(summary=before) + conversation + _INSTRUCTION + _WITH_BEFORE


def write_entry(message: Message) -> str:
    """Writes one chat message as text: role, text and tool calls, but no reasoning."""
    text = join_texts(message)
    if message["role"] == "tool":
        return f"[result of {message['name']}]\n{text}"
    parts = [f"[{message['role']}]\n{text}"] if text else []
    calls = cast(list[Message], message.get("tool_calls", []))
    return "\n".join([*parts, *map(_call_entry, calls)])


def _call_entry(call: Message) -> str:
    if call["type"] == "custom":
        custom = cast(Message, call["custom"])
        return f"[call of {custom['name']}]\n{custom['input']}"
    function = cast(Message, call["function"])
    return f"[call of {function['name']}]\n{function['arguments']}"
