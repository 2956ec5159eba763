"""A chat becomes one text, for a model that is to read it rather than to go on with it.

So it works with every chat template: whatever the roles, the calls and their order, they are words of one message.
"""

from collections.abc import Sequence
from typing import cast

from ouzel.responses.item_fields import Message
from ouzel.responses.items.message_content import text_of

_INSTRUCTION = (
    "Summarise the conversation above for somebody who has to go on with it, and who will read your summary instead. "
    "Say what the user wants and has decided, what the assistant has answered and done, what was called and what came "
    "of it, and what is still open. Keep names, numbers and other facts exactly. Leave reasoning and courtesies out. "
    "Write in the language of the conversation. Write the summary only."
)
_BEFORE = "<summary_of_what_was_before>\n{summary}\n</summary_of_what_was_before>\n\n"
_CONVERSATION = "<conversation>\n{entries}\n</conversation>\n\n"
_WITH_BEFORE = " What was before is part of the conversation: the summary is of both."


def summary_prompt(entries: Sequence[str], before: str) -> str:
    """`before` is the summary of what precedes the entries; empty where nothing does."""
    conversation = _CONVERSATION.format(entries="\n\n".join(entries))
    if not before:
        return conversation + _INSTRUCTION
    return _BEFORE.format(summary=before) + conversation + _INSTRUCTION + _WITH_BEFORE


def entry_of(message: Message) -> str:
    """Returns what one message of a chat says, without what an assistant has thought."""
    text = text_of(message)
    if message["role"] == "tool":
        return f"[result of {message['name']}]\n{text}"
    parts = [f"[{message['role']}]\n{text}"] if text else []
    return "\n".join(
        [
            *parts,
            *(_call_entry(call) for call in cast(list[Message], message.get("tool_calls", []))),
        ]
    )


def _call_entry(call: Message) -> str:
    if call["type"] == "custom":
        custom = cast(Message, call["custom"])
        return f"[call of {custom['name']}]\n{custom['input']}"
    function = cast(Message, call["function"])
    return f"[call of {function['name']}]\n{function['arguments']}"
