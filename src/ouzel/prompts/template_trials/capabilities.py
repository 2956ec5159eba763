"""Probes the capabilities of a template by rendering small chats with it.

The template's source tells little, because of macros, filters and branches; its output is reliable.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class TryRender(Protocol):
    """Renders a chat; returns None if the template refuses it or fails."""

    def __call__(
        self,
        messages: Sequence[dict[str, object]],
        tools: list[dict[str, object]] | None = None,
        enable_thinking: bool | None = None,
    ) -> str | None: ...


# Words that occur in no template.
_WORD = "zephyrquill"
_KEY, _VALUE = "ouzelkey", "ouzelvalue"
_RESULT = "ouzelresult"
_ROLE = "ouzelrole"

_SOUND = {"type": "audio", "audio": ""}

# Keys under which clients and templates have the reasoning of an answer.
REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")


@dataclass(frozen=True, slots=True)
class TemplateCapabilities:
    takes_string_content: bool
    takes_content_parts: bool  # lists of {"type": "text", …}, rendered as their text
    system_role: bool
    developer_role: bool  # treated differently from an arbitrary role
    tools: bool  # definitions of tools reach the prompt
    tool_calls: bool  # an assistant's earlier calls reach the prompt
    object_arguments: bool  # the template expects a call's arguments as an object, not as JSON text
    enable_thinking: bool  # the variable changes the prompt
    drops_tool_calls: bool = False  # an assistant's earlier calls are left out silently
    drops_tool_results: bool = False  # messages of tools are left out silently
    later_system_role: bool = False  # system messages behind a user's message are shown, too
    shows_sounds_alone: bool = False  # users' sounds reach the prompt, and no texts of users
    drops_answers: bool = False  # such a template leaves out earlier answers silently
    # the key of an assistant's message from which earlier reasoning is shown; "" for none
    reasoning_key: str = ""


def probe(render: TryRender) -> TemplateCapabilities:
    as_string, as_parts = (
        render([_user(content)]) for content in (_WORD, [{"type": "text", "text": _WORD}])
    )
    with_string, with_parts = _shows(as_string), _shows_plainly(as_parts)
    shows_sounds_alone = _shows_sounds_alone(render)
    content: object = "hello"
    if with_parts and not with_string:
        content = [{"type": "text", "text": "hello"}]
    chat = [_user(content)]
    word: object = _WORD if isinstance(content, str) else [{"type": "text", "text": _WORD}]
    answered = [*chat, {"role": "assistant", "content": word}]
    object_form = _render_call(render, chat, {_KEY: _VALUE})
    string_form = _render_call(render, chat, f'{{"{_KEY}": "{_VALUE}"}}')
    return TemplateCapabilities(
        takes_string_content=with_string,
        takes_content_parts=with_parts,
        system_role=_shows(render([{"role": "system", "content": word}, *chat])),
        later_system_role=_shows(render([*chat, {"role": "system", "content": word}])),
        shows_sounds_alone=shows_sounds_alone,
        drops_answers=shows_sounds_alone and _drops(_WORD, render(answered)),
        developer_role=_knows_role(render, "developer", word, chat),
        tools=_shows(render(chat, tools=[_tool()])),
        tool_calls=_is_native_call(object_form) or _is_native_call(string_form),
        drops_tool_calls=_drops(_VALUE, object_form, string_form),
        drops_tool_results=_drops(_RESULT, object_form, string_form),
        object_arguments=_is_native_call(object_form),
        enable_thinking=render(chat, enable_thinking=True) != render(chat, enable_thinking=False),
        reasoning_key=next(
            (key for key in REASONING_KEYS if _shows_reasoning(render, key, chat)), ""
        ),
    )


def shows_role(render: TryRender, role: str) -> bool:
    """Tells whether a message in this role reaches the prompt."""
    return any(
        _shows(render([*before, {"role": role, "content": _WORD}]))
        for before in ([], [_user("hello")])
    )


def _user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def _tool() -> dict[str, object]:
    parameters = {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
    }
    return {
        "type": "function",
        "function": {"name": _WORD, "description": "A tool.", "parameters": parameters},
    }


def _shows_sounds_alone(render: TryRender) -> bool:
    """Tells whether a user's sound changes the prompt, and a user's text does not."""
    empty = render([_user("")])
    texts = (_WORD, [{"type": "text", "text": _WORD}])
    return (
        empty is not None
        and all(render([_user(text)]) == empty for text in texts)
        and render([_user([_SOUND])]) not in (None, empty)
    )


def _render_call(render: TryRender, chat: list[dict[str, object]], arguments: object) -> str | None:
    # The id has nine characters, because some templates (Mistral) refuse other ids.
    call = {
        "id": "abcdef123",
        "type": "function",
        "function": {"name": _WORD, "arguments": arguments},
    }
    called: dict[str, object] = {"role": "assistant", "content": "", "tool_calls": [call]}
    answered: dict[str, object] = {
        "role": "tool",
        "tool_call_id": "abcdef123",
        "name": _WORD,
        "content": _RESULT,
    }
    whole = render([*chat, called, answered], tools=[_tool()])
    return whole if whole is not None else render([*chat, called])


def _shows_reasoning(render: TryRender, key: str, chat: list[dict[str, object]]) -> bool:
    """Looks for reasoning before an answer, and before a call, because some templates show it only
    there.
    """
    content = chat[0]["content"]
    call = {"id": "abcdef123", "type": "function", "function": {"name": "look", "arguments": {}}}
    answer: dict[str, object] = {"role": "assistant", "content": content, key: _WORD}
    calling: dict[str, object] = {
        "role": "assistant",
        "content": "",
        "tool_calls": [call],
        key: _WORD,
    }
    return any(_shows(render([*chat, message])) for message in (answer, calling))


def _knows_role(render: TryRender, role: str, word: object, chat: list[dict[str, object]]) -> bool:
    """Tells whether the template treats a role specially. Many templates print any role, even if
    the model has never seen it.
    """
    text = render([{"role": role, "content": word}, *chat])
    as_any_role = render([{"role": _ROLE, "content": word}, *chat])
    return _shows(text) and (as_any_role is None or as_any_role.replace(_ROLE, role) != text)


def _drops(word: str, *texts: str | None) -> bool:
    """Tells whether all texts lack the word. None (a refusal) does not count, because the template
    may expect another form.
    """
    rendered = [text for text in texts if text is not None]
    return bool(rendered) and not any(word in text for text in rendered)


def _shows(text: str | None) -> bool:
    return text is not None and _WORD in text


def _shows_plainly(text: str | None) -> bool:
    """Tells whether the word is shown, but not in a list that is printed in Python's or JSON's
    notation.
    """
    return (
        text is not None and _WORD in text and f"'{_WORD}'" not in text and f'"{_WORD}"' not in text
    )


def _is_native_call(text: str | None) -> bool:
    """Tells whether a rendered prompt shows a tool call in the model's own format.

    Other forms are JSON that is escaped twice, a Python dictionary, and the whole JSON message.
    """
    if text is None or _KEY not in text or _VALUE not in text:
        return False
    return not any(
        sign in text for sign in (f'\\"{_KEY}', f"'{_KEY}': '", '"tool_calls"', "'tool_calls'")
    )
