"""Templates cannot make gigabytes of text, and their filters and methods do their work."""

from pathlib import Path

import pytest

from ouzel.errors import ModelLoadError
from ouzel.prompts.chat_template import ChatTemplate
from ouzel.prompts.marked_text import StandIns
from ouzel.prompts.spellings import Spellings
from ouzel.prompts.template_environment import (
    TemplateOutputTooLong,
    compile_template,
    render_template,
)


def rendered(source: str, **variables: object) -> str:
    chat_template = ChatTemplate({"default": source}, {})
    return chat_template.render([{"role": "user", "content": "Hello"}], variables=variables)


WIDE = [
    "'x'.center(n)",
    "'x'.ljust(n)",
    "'x'.rjust(n)",
    "'1'.zfill(n)",
    "'\\t'.expandtabs(n)",
    "'x'.encode().ljust(n)",
    "'{:1000000000}'.format('x')",
    "'{:{}}'.format('x', n)",
    "'{a:1000000000}'.format_map({'a': 1})",
    "('{}' * 10000).format('x' * 10000)",
    "('x' * 10000).replace('x', 'y' * 10000)",
    "('x' * 10000).join('y' * 10000)",
    "('x' * 10000).join(range(10000) | map('string'))",
    "('x' * 10000).translate({120: 'y' * 10000})",
    "(1).to_bytes(n, 'big')",
    "('x' | attr('center'))(n)",
    "'x' | center(n)",
    "['x'] | map('center', n) | list",
    "'x' | indent(n, first=true)",
    "('x\\n' * 10000) | indent('y' * 10000)",
    "'{:{}{}}'.format('x', 9999, 9999)",
    "'{:{}000000}'.format('x', 100)",
    "'%(a(b))999999999d' % {'a(b)': 1}",
    "'%(a)999999999d' % {'a': 1}",
    "'%.999999999f' % 1",
    "'%5.*f' | format(n, 1)",
    "'%%%999999999d' % 1",
    "'%1000000000d' | format(1)",
    "'%*d' | format(n, 1)",
    "('%s' * 10000) | format('x' * 10000)",
    "('x' * 10000) | replace('x', 'y' * 10000)",
    "('y' * 10000) | join('x' * 10000)",
    "range(10000) | map('string') | join('x' * 10000)",
    "['x'] | batch(n, 'y') | list",
    "['x'] | slice(n) | list",
    "('x ' * 10000) | wordwrap(1, true, 'y' * 10000)",
    "{'a': 1} | tojson(indent=n)",
]


@pytest.mark.parametrize("expression", WIDE)
def test_no_filter_or_method_makes_gigabytes(expression: str) -> None:
    """Each expression would make 100 MB or more in one call."""
    source = "{% set n = 1000000000 %}{% set value = " + expression + " %}"
    with pytest.raises(TemplateOutputTooLong):
        render_template(compile_template(source), {"message": "x"})


DOUBLED = (
    "{% set ns = namespace(x=['x']) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}"
    "{% endfor %}"
)
MAPPED = (
    "{% set ns = namespace(x=1) %}{% for i in range(40) %}{% set ns.x = {'a': ns.x, 'b': ns.x} %}"
    "{% endfor %}"
)

PAIRED = (
    "{% set ns = namespace(x='x') %}{% for i in range(40) %}{% set ns.x = (ns.x, ns.x) %}"
    "{% endfor %}"
)
MULTIPLIED = (
    "{% set ns = namespace(x=['x']) %}{% for i in range(6) %}{% set ns.x = [ns.x] * 1000 %}"
    "{% endfor %}"
)
WRITING = [
    "{{ ns.x | tojson }}",
    "{{ ns.x }}",
    "{{ ns.x | string }}",
    "{{ ns.x ~ '' }}",
    "{{ '%s' % (ns.x,) }}",
    "{{ '{}'.format(ns.x) }}",
    "{{ ns.x | trim }}",
    "{{ ns.x | pprint }}",
    "{{ [ns.x] | join }}",
    "{{ ns.x | upper }}",
    "{{ ns.x | replace('a', 'b') }}",
    "{{ '%s' | format(ns.x) }}",
    "{{ {'a': ns.x} | tojson(indent=1) }}",
    "{% if [ns.x] == [ns.x, 1] %}{% endif %}",
    "{% if 'a' in ns.x %}{% endif %}",
    "{{ ''.join([ns.x]) }}",
    "{{ [ns.x] | sort }}",
    "{{ [ns.x] | unique | list }}",
    "{{ [ns.x] | select('eq', 1) | list }}",
    "{{ ns }}",
    "{{ ns | string }}",
    "{{ {'a': ns.x}.items() }}",
    "{{ {'a': ns.x}.values() | string }}",
    "{{ {'a': ns.x}.keys() | attr(ns.x) }}",
    "{{ [[ns.x]] | map('first') | join }}",
    "{{ [ns.x] | reverse | join }}",
    "{% if [1] in [[ns.x]] | map('first') %}{% endif %}",
    "{{ [ns.x].index(1) }}",
    "{{ [1] | map('string') | list }}{{ [ns.x] | map('string') | list }}",
]


HASHING = [
    "{{ {}[ns.x] }}",
    "{{ {ns.x: 1} }}",
    "{{ {}.get(ns.x) }}",
    "{{ [{}] | map(attribute=ns.x) | list }}",
]


@pytest.mark.parametrize("hashing", HASHING)
def test_no_tuple_is_a_key_that_holds_others_too_often(hashing: str) -> None:
    with pytest.raises(TemplateOutputTooLong):
        render_template(compile_template(PAIRED + hashing), {})


def test_namespaces_and_views_of_dictionaries_are_written_out() -> None:
    source = (
        "{% set ns = namespace(x=['a']) %}{{ ns }}{{ {'k': 1}.items() }}"
        "{{ {'k': 1, ('a', 1): 2}[('a', 1)] }}"
    )

    assert rendered(source) == "<Namespace {'x': ['a']}>dict_items([('k', 1)])2"


@pytest.mark.parametrize(
    "stand_ins", [None, StandIns(Spellings({"<|end|>"}))], ids=["plain", "marked"]
)
@pytest.mark.parametrize(
    "value", [DOUBLED, MAPPED, MULTIPLIED], ids=["doubled", "mapped", "multiplied"]
)
@pytest.mark.parametrize("writing", WRITING)
def test_no_list_is_written_out_that_holds_others_too_often(
    writing: str, value: str, stand_ins: StandIns | None
) -> None:
    with pytest.raises(TemplateOutputTooLong):
        render_template(compile_template(value + writing, stand_ins), {})


def test_lists_that_are_long_and_flat_are_written_out() -> None:
    source = (
        "{% set ns = namespace(x=[]) %}{% for i in range(3000) %}{% set ns.x = ns.x + [[i]] %}"
        "{% endfor %}"
    )

    assert (
        len(rendered(source + "{{ ns.x | length }} {{ ns.x | tojson }}{{ ns.x == ns.x }}")) > 10_000
    )


def test_filters_and_methods_work_as_in_jinja() -> None:
    source = (
        "{{ 'x'.center(5) }}|{{ ', '.join(['a', 'b'] | map('upper')) }}|"
        "{{ '{:>3} {}'.format('a', 10**6) }}|"
        "{{ ['a', 'b'] | map('upper') | join('-') }}|{{ 'a\nb' | indent(2) }}|"
        "{{ 'aXb' | replace('X', '--') }}|"
        "{{ '%s=%d' | format('a', 7) }}|{{ 'aXbX'.replace('X', '', 1) }}|"
        "{{ {'a': [1]} | tojson(indent=1) }}|"
        "{{ [{'n': 'a'}, {'n': 'b'}] | join('+', attribute='n') }}|"
        "{{ [1, 2, 3] | batch(2, 0) | list }}|"
        "{{ 'a b' | wordwrap(1) }}|{{ '{a}'.format_map({'a': 1}) }}|{{ '7'.zfill(3) }}"
    )
    assert "".join(render_template(compile_template(source), {})) == (
        '  x  |A, B|  a 1000000|A-B|a\n  b|a--b|a=7|abX|{\n "a": [\n  1\n ]\n'
        "}|a+b|[[1, 2], [3, 0]]|a\nb|1|007"
    )


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'** %s **' % 'x'", "** x **"),
        ("'%s 100000 tokens, 100%%00000' % 'x'", "x 100000 tokens, 100%00000"),
        ("'* item %s' | format('x')", "* item x"),
        ("'%-6.2f| %(a)s' % {'a': 1} if false else '%-6.2f|' % 1", "1.00  |"),
        ("'Limit 131072: {:>3}'.format('x')", "Limit 131072:   x"),
    ],
)
def test_a_format_may_have_stars_and_numbers_beside_its_conversions(
    expression: str, text: str
) -> None:
    assert "".join(render_template(compile_template("{{ " + expression + " }}"), {})) == text


def test_a_template_that_passes_its_limits_when_probed_ends_the_start(tmp_path: Path) -> None:
    path = tmp_path / "chat_template.jinja"
    for source, reason in (
        ("{{ 'x'.ljust(10**10) }}", "longer than 33554432 characters"),
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "took too long",
        ),
    ):
        path.write_text(source)
        with pytest.raises(
            ModelLoadError, match=f"the chat template in {path} cannot be used: .*{reason}"
        ):
            ChatTemplate.load(tmp_path, max_cpu_s=0.2)
