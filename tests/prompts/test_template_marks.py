"""Stand-ins do not change a template's text, and tell which control tokens it wrote."""

import pytest

from ouzel.errors import InvalidRequest
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.marked_text import StandIns
from ouzel.prompts.messages import Message
from ouzel.prompts.spellings import Spellings
from ouzel.prompts.template_trials.check import check_marks

MARKS = ("<|end|>", "<|user|>", "<think>", "</think>", "[INST]", "<s>")
MESSAGES: list[Message] = [{"role": "user", "content": " a</think> <|end|>b<think>"}]
SET = "{% set mark = '</think>' %}{% set text = messages[0].content %}"
NO_MARKS = StandIns(Spellings(()))


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
        (
            SET + "{{ text.split(mark)[0] }}|{{ text.split('</think>')[-1] }}{{ mark }}",
            ["</think>"],
        ),
        (
            SET
            + (
                "{{ mark in text }}{{ mark == '</think>' }}{{ mark in ['</think>'] }}"
                "{{ '</think>' in [mark] }}"
            ),
            [],
        ),
        (
            SET
            + "{{ text.startswith((mark, ' a')) }}{{ text.find(mark) }}{{ mark.startswith('</') }}",
            [],
        ),
        (
            SET + "{{ text.replace(mark, '<|end|>') }}{{ text | replace(mark, '[INST]') }}",
            ["<|end|>", "[INST]"],
        ),
        (SET + "{{ ('x' + mark + 'y').split('</think>') | join(' ') }}", []),
        (SET + "{{ (mark + 'y') | replace('</think>', 'z') }}", []),
        (SET + "{{ (mark + ' ').replace(mark, '') }}{{ (mark ~ text).count(mark) }}", []),
        (
            SET + "{{ {'</think>': 1}.get(mark, 0) }}{{ {'</think>': '<think>'}[mark] }}",
            ["<think>"],
        ),
        (
            SET
            + (
                "{{ mark is in ['</think>'] }}"
                "{{ [text] | map('replace', mark, '') | list | length }}"
            ),
            [],
        ),
        (
            SET + "{{ ['x', 'y'] | join(mark) }}{{ nothing | default(mark) }}",
            ["</think>", "</think>"],
        ),
        ("{{ nothing or '<s>' }}{{ nothing | default('<|end|>') }}", ["<s>", "<|end|>"]),
        ("{{ {'a': '<think>', 'b': messages} | tojson }}", ["<think>"]),
        (
            "{{ ['<think>', messages[0]] | string }}{{ {'a': '<s>'} | tojson(ensure_ascii=true) }}",
            ["<s>"],
        ),
        (
            "{{ '%s<think>' % messages[0].content }}{{ '{}<s>'.format('<think>') }}",
            ["<think>", "<s>", "<think>"],
        ),
        (
            (
                "{% macro turn(role, end='<|end|>') %}{{ role }}{{ end }}{% endmacro %}"
                "{{ turn('<s>') }}"
            ),
            ["<s>", "<|end|>"],
        ),
        (
            (
                "{% set x %}<s>{{ messages[0].content }}{% endset %}{{ x | trim }}"
                "{{ x.endswith('<think>') }}"
            ),
            ["<s>"],
        ),
        ("{{ '\n<s>\n' | trim }}{{ ' <|end|> '.strip() }}", ["<s>", "<|end|>"]),
        ("{{ '<s>' | upper }}{{ messages[0].content | upper | lower }}", []),
        (
            SET
            + "{% set marks = [mark, 'x'] %}{{ '</think>' in marks }}{{ ['</think>'] == [mark] }}",
            [],
        ),
        (
            SET
            + (
                "{% set d = {mark: mark} %}{{ mark in d.values() }}{{ d['</think>'] }}"
                "{{ mark in d }}"
            ),
            ["</think>"],
        ),
        (
            SET
            + (
                "{{ [mark, 'a'] | select('equalto', '</think>') | list | length }}"
                "{{ [mark].index('</think>') }}"
            ),
            [],
        ),
        (
            SET
            + "{{ text['</think>' | length:] }}{{ mark[-1] == '>' }}{{ (mark ~ '<|end|>')[1:] }}",
            ["<|end|>"],
        ),
        (
            SET + "{{ mark | center(20) }}{{ mark.zfill(12) }}{{ (mark ~ ' b') | wordcount }}",
            ["</think>", "</think>"],
        ),
        (
            (
                "{{ '<s>' | list | join('-') }}{{ '<s>' | reverse }}{{ '<s>' | first }}"
                "{{ '<s>' | urlencode }}"
            ),
            [],
        ),
        (
            "{{ '<|%s|>' % messages[0].role }}{{ '<|{}|>' | format }}{{ '<|en%s|>' % 'd' }}",
            ["<|user|>", "<|end|>"],
        ),
        (
            "{{ ['a[INST]'] | map('replace', '[INST]', '<s>') | join }}{{ {'<s>': 1} | tojson }}",
            ["<s>"],
        ),
        (
            (
                "{{ '%r%a' % ('<s>', '<s>') }}{{ '{!r}'.format('<s>') }}{{ ['<s>'] }}"
                "{{ ['<s>'] ~ '' }}"
            ),
            [],
        ),
        (
            (
                "{{ ' <s>a b<s> '.strip().rsplit(None, 1) | join('|') }}"
                "{{ 'a<s>\nb'.splitlines() | first }}"
            ),
            ["<s>"] * 3,
        ),
        (
            (
                "{{ 'a<s>b'.partition('<s>')[1] }}{{ '<s>ab'.rstrip('ab') }}"
                "{{ 'x<s>'.removeprefix('x') }}"
            ),
            ["<s>"] * 3,
        ),
        (
            (
                "{{ ['<s>', 'a'] | sort | join }}{{ ['<s>', '<s>'] | unique | list | length }}"
                "{{ '<' ~ 's' ~ '>' }}"
            ),
            ["<s>"],
        ),
    ],
)
def test_stand_ins_change_nothing(source: str, marks: list[str]) -> None:
    plain = template(source)
    marking = plain.with_stand_ins(StandIns(Spellings(MARKS)), NO_MARKS)
    marked = marking.write_chat(MESSAGES)
    assert marked.text == plain.render(MESSAGES) == marking.render(MESSAGES)
    assert sorted(marked.text[slice(*span)] for span in marked.spans) == sorted(marks)


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("{{ text }}", 0),
        ("{{ tools[0].function.name }}{{ x }}", 0),
        (
            (
                "{{ ('\"' ~ '\\\\ud9c0\\\\udc3c\\\\ud9c0\\\\udc73\\\\ud9c0\\\\udc3e' ~ '\"') | "
                "from_json }}"
            ),
            0,
        ),
        ("{{ text | striptags }}{{ text | urlize }}{{ text.encode().decode() }}", 0),
        ("{{ '%c' % number }}s{{ '{:c}s>'.format(number) }}", 0x9003C),
    ],
)
def test_clients_write_no_stand_ins(source: str, number: int) -> None:
    """A template may transform the client's text in many ways."""
    own = StandIns(Spellings(MARKS)).write_tokens("<s>")
    text = f"{own}{''.join(f'&#{ord(each)};' for each in own)}"
    messages: list[Message] = [{"role": "user", "content": text}]
    marking = template("{% set text = messages[0].content %}" + source).with_stand_ins(
        StandIns(Spellings(MARKS)), NO_MARKS
    )
    tools: list[dict[str, object]] = [{"function": {"name": own}}]
    marked = marking.write_chat(
        messages, tools=tools, variables={"number": number, "x": {own: own}}
    )
    assert marked.spans == ()
    assert "<s>" not in marked.text


def test_a_template_that_fails_at_an_answers_marks_gets_the_answer_as_text() -> None:
    source = (
        "{% for m in messages %}<s>{{ m.content | urlencode | replace('%F', fail()) }}{% endfor %}"
    )
    marking = template(
        source.replace(
            "fail()", "'' if '%F' not in (m.content | urlencode) else raise_exception('no')"
        )
    )
    answers = StandIns(Spellings(["<think>"]))
    messages: list[Message] = [{"role": "assistant", "content": "<think>a"}]
    assert marking.with_stand_ins(StandIns(Spellings(MARKS)), answers).write_chat(
        messages
    ).spans == ((0, 3),)


def test_a_refusal_shows_no_stand_ins() -> None:
    source = "{% set mark = '<s>' %}{{ raise_exception('no ' + mark + '<|end|>') }}"
    with pytest.raises(InvalidRequest, match=r"no <s><\|end\|>$"):
        template(source).with_stand_ins(StandIns(Spellings(MARKS)), NO_MARKS).write_chat(MESSAGES)


@pytest.mark.parametrize(
    ("source", "warnings"),
    [
        ("<s>{{ messages[0].content }}<|end|>", []),
        (
            "{{ '<S>' | lower }}{{ {'<|end|>': tools} | tojson }}",
            ["the control tokens <s>, <|end|> of the chat template are encoded as text"],
        ),
    ],
)
def test_the_log_tells_of_control_tokens_that_are_lost(
    source: str, warnings: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    plain, marks = template(source), Spellings(MARKS)
    check_marks(plain, plain.with_stand_ins(StandIns(marks), NO_MARKS), marks)
    assert [record.getMessage() for record in caplog.records] == warnings
