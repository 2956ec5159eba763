"""The text of a custom tool obeys the client's grammar, in every form in which models write it."""

import json

import pytest

from ouzel.grammar.ebnf.rules import Part, Reference, Row, find_holding
from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats import Format
from ouzel.grammar.write.nodes import Literal
from tests.grammar.runs import accepts, compile_text, started

PATCH = r"""
start: begin_patch hunk+ end_patch
begin_patch: "*** Begin" LF
end_patch: "*** End" LF?
hunk: "*** Add File: " filename LF add_line+
    | "*** Update File: " filename LF change+ // a comment
filename: /(.+)/
?add_line: "+" /(.*)/ LF -> line
change: ("@@" | "@@ " /(.+)/ | ("+" | "-" | " ") /(.*)/) LF
%import common.LF
"""
GOOD_PATCH = (
    '*** Begin\n*** Add File: a "b".py\n+print("é\\n")\n+\tx\n*** Update File: x\n@@ f():\n-a\n'
    "+</p\n*** End\n"
)
SUM = 'start: term (("+" | MINUS) term)*\nterm: NUMBER | "(" start ")"\nMINUS: "-"\n'
SPACED = SUM + "%import common (NUMBER, WS_INLINE)\n%ignore WS_INLINE\n"
CASES = [
    (
        "lark",
        PATCH,
        [GOOD_PATCH, GOOD_PATCH[:-1]],
        ["", "*** Begin\n*** End\n", GOOD_PATCH.replace("+print", "print")],
    ),
    (
        "lark",
        'start: "select"i " "~1..2 /[a-z]+/i',
        ["SELECT  Abc", "select a"],
        ["select", "select   a", "select 1"],
    ),
    (
        "lark",
        'start: A["c"..."e"] /./s{2}\nA.2: "\\x41"'.replace("...", ".."),
        ["A\n\\", 'Ad""'],
        ["A", "Af12", "a12"],
    ),
    ("lark", 'start: "é" /\\/\\x22/ | "\\\\" "\\t"', ['é/"', "\\\t"], ["é", '/"']),
    (
        "regex",
        r"^(?P<month>May|June) \d{1,2}(?:st|nd)?$",
        ["May 3", "June 31st"],
        ["May", "May 3 ", "may 3"],
    ),
    ("regex", r".*", ['a"b"\\', ""], ["\n"]),
    ("regex", r"[\s\S]{3}", ['a\n"', "\\\t\r"], ["a"]),
    ("regex", r"\p{L}[^\p{L}\n]\P{Lu}", ['é"\\', "a1\n"], ["1", "a\n1", "a1A"]),
    ("regex", r"[^a\\]+", ['b"\n'], ["a", "\\"]),
    ("regex", r"[^\x22A]+", ["a\n"], ['"', "A"]),  # \x has two digits: A is a character of its own
    ("regex", r"[\\x22]+[\\pL]", ["\\x2\\", "2L"], ['"L', "xA"]),  # escaped backslashes
    ("regex", r"[-a]+[\w-.]", ["-a-", "aa_", "-."], ["a`", "a+"]),
    ("regex", r"[\x00-\x1F][\v\x7F]", ["\0\x0b", "\n\x7f"], ["a\x7f", "\n\n"]),
    ("regex", r"a\|b", ["a|b"], ["a", "b"]),
    ("lark", r'start: "\\x41\x41"', ["\\x41A"], ["AA", "\\u0041A"]),
]


def free_text(syntax: str, definition: str, style: str = "") -> Format:
    where = {"style": style, "name": "input"} if style else {}
    return {"type": "free_text", "syntax": syntax, "definition": definition, **where}


def in_style(text: str, style: str) -> str:
    match style:
        case "qwen_xml":
            return f"<parameter=input>\n{text}\n</parameter>\n"
        case "glm_xml":
            return f"<arg_key>input</arg_key>\n<arg_value>{text}</arg_value>"
        case _:
            return json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize("style", ["", "qwen_xml", "glm_xml"])
@pytest.mark.parametrize(("syntax", "definition", "good", "bad"), CASES)
def test_a_text_is_of_its_grammar(
    syntax: str, definition: str, good: list[str], bad: list[str], style: str
) -> None:
    session = started(free_text(syntax, definition, style))
    assert [text for text in good if not accepts(session, in_style(text, style))] == []
    assert [text for text in bad if accepts(session, in_style(text, style))] == []


def test_a_grammar_with_recursion_keeps_its_terminals_in_a_json_string() -> None:
    session = started(free_text("lark", SPACED))
    assert [
        text for text in ("1+(2-3.5)", "1 + ( 2 )") if not accepts(session, json.dumps(text))
    ] == []
    assert [text for text in ("1+", "(1", "1\n+2") if accepts(session, json.dumps(text))] == []


def test_a_terminal_without_escapes_is_ended_by_one() -> None:
    """As docs/how-to/tools.md says: a terminal that has escapes would never end."""
    comment = r"%ignore /#[^\n\"\\\t\r\f\x08]*/"
    session = started(free_text("lark", f'start: "a" "b"\n{comment}\n%ignore "\\n"'))
    assert accepts(session, json.dumps("a# x\n#\nb"))


@pytest.mark.parametrize(
    "definition", [SPACED, SUM + "NUMBER: /[0-9]+/", 'start: "a"+\n%ignore " "']
)
def test_bare_text_is_of_no_grammar_with_recursion(definition: str) -> None:
    with pytest.raises(GrammarError, match="definition has recursion or %ignore"):
        compile_text(free_text("lark", definition, "qwen_xml"))


@pytest.mark.parametrize("style", ["", "qwen_xml"])
def test_a_text_of_any_length_can_end(style: str) -> None:
    """A greedy lexeme would never end: it would take the end mark as text."""
    session = started(free_text("regex", r"[\s\S]*", style))
    assert accepts(session, in_style("a\n</parameter", style))


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("", "the rule 'start' is missing"),
        ("start: other", "the rule 'other' is missing"),
        ('start: "a" start', "the rule 'start' can never end"),
        ('start: "a"\nstart: "b"', "the rule 'start' is defined twice"),
        ('start: ("a"', r"'the end' stands where '\)' is expected"),
        ('start: "a" )', "stands where a rule is expected"),
        ("start: /a(?=b)/", "look-around"),
        ("start: /[a-z&&[b]]/", "a character class within another"),
        (r"start: /\p{Greek}/", r"\\p{Greek} is not supported in a JSON string"),
        ("start: /a/x", "the flags 'x'"),
        ('start: %json {"type": "object"}', "'%json .* in line 1 is not supported"),
        ("start: <think>", "'<think>' in line 1 is not supported"),
        ('start: "a"\n\nx: ~/a/', "'~/a/' in line 3 is not supported"),
        (
            "start: " + "(" * 99 + '"a"' + ("?" * 99 + ")") * 99,
            "groups and repetitions of format.definition must be <=",
        ),
        (r"start: /a\|^b/", r"'\^' within the pattern"),
        ('start: "ab".."c"', "must have single characters"),
        ('start: "\\ud800"', "is not a string"),
        ('start: "a"~3..2', "ends before it begins"),
        ('start: "a"{99999}', "must be <= 10000, given 99999"),
        ("start: " + "(" * 200 + '"a"' + ")" * 200, "nesting of format.definition must be <= 100"),
        ("%import common.FOO\nstart: FOO", "common.FOO is not supported"),
        ("%declare X\nstart: X", "in line 1 is not supported"),
        (
            "start: a\n" + "".join(f"r{number}: a\n" for number in range(3000)),
            "rules of .* must be <= 2000",
        ),
    ],
)
def test_rules_that_a_grammar_cannot_express_are_named(definition: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        compile_text(free_text("lark", definition))


def test_a_rule_of_many_rules_is_looked_at_once() -> None:
    """The check does not start again for each rule that is found to be regular or to end."""
    num_parts = 0

    def counted(part: Part) -> int | None:
        nonlocal num_parts
        num_parts += 1
        return 1 if isinstance(part, Reference) else len(part.parts) if isinstance(part, Row) else 0

    rules: dict[str, Part] = {f"r{number}": Literal("a") for number in range(100)}
    rules["start"] = Row(tuple(map(Reference, rules)))
    assert find_holding(rules, counted) == rules.keys()
    assert num_parts == 201


def test_another_syntax_is_refused() -> None:
    with pytest.raises(GrammarError, match="syntax must be one of lark, regex, given 'ebnf'"):
        compile_text(free_text("ebnf", 'root ::= "a"'))
