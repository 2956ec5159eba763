"""Templates do with brackets what they do without, and the control tokens that they write are known."""

import pytest

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.marked_text import Brackets
from ouzel.prompts.messages import Message
from ouzel.prompts.spellings import Spellings

MARKS = ("<|end|>", "<|user|>", "<think>", "</think>", "[INST]", "<s>")
MESSAGES: list[Message] = [{"role": "user", "content": " a</think> <|end|>b<think>"}]
SET = "{% set mark = '</think>' %}{% set text = messages[0].content %}"
NO_BRACKETS = Brackets(Spellings(()))


def template(source: str) -> ChatTemplate:
    return ChatTemplate({"default": source}, {"bos_token": "<s>"})


@pytest.mark.parametrize(
    ("source", "marks"),
    [
        ("[INST]{{ messages[0].content }}<|end|>", ["[INST]", "<|end|>"]),
        ("{{ '[INST]' + messages[0].content | trim ~ '<|end|>' }}", ["[INST]", "<|end|>"]),
        ("{{ bos_token }}{{ bos_token is defined and bos_token == '<s>' }}", ["<s>"]),
        ("{{ '<|en' ~ 'd|>' }}", ["<|end|>"]),
        ("<|{{ messages[0].role }}|>x", ["<|user|>"]),
        ("<|{{ messages[0].content }}|>", []),
        ("<|end{{ '' }}|>", ["<|end|>"]),
        ("{{ messages[0].content }}<|{{ 'end' if false else 'x' }}|>", []),
        (SET + "{{ text.split(mark)[0] }}|{{ text.split('</think>')[-1] }}{{ mark }}", ["</think>"]),
        (SET + "{{ mark in text }}{{ mark == '</think>' }}{{ mark in ['</think>'] }}{{ '</think>' in [mark] }}", []),
        (SET + "{{ text.startswith((mark, ' a')) }}{{ text.find(mark) }}{{ mark.startswith('</') }}", []),
        (SET + "{{ text.replace(mark, '<|end|>') }}{{ text | replace(mark, '[INST]') }}", ["<|end|>", "[INST]"]),
        (SET + "{{ ('x' + mark + 'y').split('</think>') | join(' ') }}", []),
        (SET + "{{ (mark + 'y') | replace('</think>', 'z') }}", []),
        (SET + "{{ (mark + ' ').replace(mark, '') }}{{ (mark ~ text).count(mark) }}", []),
        (SET + "{{ {'</think>': 1}.get(mark, 0) }}{{ {'</think>': '<think>'}[mark] }}", ["<think>"]),
        (SET + "{{ mark is in ['</think>'] }}{{ [text] | map('replace', mark, '') | list | length }}", []),
        (SET + "{{ ['x', 'y'] | join(mark) }}{{ nothing | default(mark) }}", ["</think>", "</think>"]),
        ("{{ nothing or '<s>' }}{{ nothing | default('<|end|>') }}", ["<s>", "<|end|>"]),
        ("{{ {'a': '<think>', 'b': messages} | tojson }}", ["<think>"]),
        ("{{ ['<think>', messages[0]] | string }}{{ {'a': '<s>'} | tojson(ensure_ascii=true) }}", ["<think>", "<s>"]),
        ("{{ '%s<think>' % messages[0].content }}{{ '{}<s>'.format('<think>') }}", ["<think>", "<s>", "<think>"]),
        ("{% macro turn(role, end='<|end|>') %}{{ role }}{{ end }}{% endmacro %}{{ turn('<s>') }}", ["<s>", "<|end|>"]),
        ("{% set x %}<s>{{ messages[0].content }}{% endset %}{{ x | trim }}{{ x.endswith('<think>') }}", ["<s>"]),
        ("{{ '\n<s>\n' | trim }}{{ ' <|end|> '.strip() }}", ["<s>", "<|end|>"]),
        ("{{ '<s>' | upper }}{{ messages[0].content | upper | lower }}", []),
    ],
)  # fmt: skip
def test_brackets_change_nothing(source: str, marks: list[str]) -> None:
    plain = template(source)
    marking = plain.with_brackets(Brackets(Spellings(MARKS)), NO_BRACKETS)
    marked = marking.write_chat(MESSAGES)
    assert marked.text == plain.render(MESSAGES) == marking.render(MESSAGES)
    assert sorted(marked.text[slice(*span)] for span in marked.spans) == sorted(marks)


def test_a_refusal_shows_no_brackets() -> None:
    source = "{% set mark = '<s>' %}{{ raise_exception('no ' + mark + '<|end|>') }}"
    with pytest.raises(InvalidRequest, match=r"no <s><\|end\|>$"):
        template(source).with_brackets(Brackets(Spellings(MARKS)), NO_BRACKETS).write_chat(MESSAGES)
