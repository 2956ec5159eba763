"""Clients may send grammars in EBNF and Lark."""

import pytest

from ouzel.grammar.errors import GrammarError
from ouzel.grammar.formats import Format
from tests.grammar.runs import accepts, compile_text, started
from tests.grammar.tokenizers import special_ids

SUM = 'root ::= expr\nexpr ::= term ("+" term)*\nterm ::= [0-9]+ | "(" expr ")"'
JSON = r"""
# JSON, as GBNF grammars write it
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"""
CHESS = r"""
root   ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move   ::= (pawn | piece | castle) [+#]?
piece  ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn   ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
"""  # the form of llama.cpp's examples


def grammar(text: str) -> Format:
    return {"type": "grammar", "grammar": text}


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        (SUM, ["1+(2+3)", "42", "((1))"], ["1+", "x", "(1", ""]),
        (
            JSON,
            ['{"a": [1, -2.5e3, "x\\u00e9\\n"], "b": {}}', "{}"],
            ["[1]", '{"a"}', '{"a": 01}', "{"],
        ),
        (
            CHESS,
            ["1. e4 e5\n2. Nf3 Nc6\n", "1. O-O-O d8=Q+\n1. a1 a1\n"],
            ["1. e4 e5\n", "1. e9 e5\n2. e4 e5\n"],
        ),
        (
            "root ::= [\\x20\\x21\\x23-\\x5b\\x5d-\\U0010FFFF]+ [ぁ-ゟ]",
            ["a-é😀ぁ"],
            ['"ぁ', "\\ぁ", "a"],
        ),
        ('root ::= "a" "bc" | "ab" "x"', ["abc", "abx"], ["ab", "a"]),
        ('root ::= x "." | x ".." root\nx ::= [a-z.]*', ["a.", "..", "a..b."], ["a", ""]),
        ('root ::= "é\\u00e9\\x41\\"\\\\\\n" [\\-a\\]]', ['ééA"\\\n-', 'ééA"\\\n]'], ["é"]),
        (
            'root ::=\n  "a"\n  | "b" # or\n  | last-one\nlast-one ::= "c"?',
            ["a", "b", "c", ""],
            ["d"],
        ),
        ('root ::= "a"{2} "b"{1,} "c"{,2} "d"{0,1}', ["aab", "aabbccd"], ["ab", "aabccc"]),
        ("root ::= [^a-y]. ", ["z\n", "é😀"], ["az", "z"]),
        ('root ::= "(" root ")" | ', ["", "(())"], ["(", "())"]),
        ('root ::= root "a" | "b"', ["b", "baa"], ["a", ""]),
        (
            'root ::= "x" <think> y </think>\ny ::= "a" y | "b"',
            ["x<think>aab</think>"],
            ["x<think>aa", "xb"],
        ),
        ('root ::= "<think>" [a-z]* "</think>"', ["<think>ab</think>"], ["<think>"]),
        (f"root ::= <[{special_ids()['<think>']}]>", ["<think>"], [""]),
        ('start: "a" T\nT: /[0-9]+/', ["a12"], ["a", "12"]),
        ('start: <think> "<think>"? // <nothing>\n', ["<think>"], [""]),
        ('%llguidance {}\nstart: %json {"type": "integer"}\n', ["12"], ["a"]),
    ],
)
def test_a_grammar_accepts_its_texts_and_no_others(
    text: str, good: list[str], bad: list[str]
) -> None:
    session = started(grammar(text))
    assert [text for text in good if not accepts(session, text)] == []
    assert [text for text in bad if accepts(session, text)] == []


def test_a_grammar_stands_between_other_parts() -> None:
    tag = {"type": "tag", "begin": "<sum>", "content": grammar(SUM), "end": "</sum>"}
    session = started({"type": "sequence", "elements": [tag, tag]})
    assert accepts(session, "<sum>1+2</sum><sum>(3)</sum>")
    assert not accepts(session, "<sum>1+</sum><sum>(3)</sum>")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "format.grammar: the rule 'root' is missing"),
        ('start ::= "a"', "the rule 'root' is missing"),
        ("root ::= other", "the rule 'other' is missing"),
        ('root ::= "a" root', "the rule 'root' can never end"),
        ('root ::= "a"\nroot ::= "b"', "the rule 'root' is defined twice"),
        ('root ::= ("a"', "'the end' stands where a sign is expected"),
        ("root ::= )", "stands where a name is expected"),
        ("root ::= * ", r"'\*' stands where a text, a class or a group is expected"),
        ('root ::= "a', "in line 1 is not supported"),
        ('root ::= "a" (="b")', "look-ahead is not supported"),
        ('root ::= TagDispatch(("a", root))', r"TagDispatch\(...\) is not supported"),
        ('root ::= "a"{3,2}', "ends before it begins"),
        ('root ::= "a"{1000000}', "repetition in format.grammar must be <= 10000, given 1000000"),
        ('root ::= "a"{' + "9" * 5000 + "}", "'{9999.* in line 1 is not supported"),
        ("root ::= <[" + "9" * 5000 + "]>", r"'<\[9999.* in line 1 is not supported"),
        ('root ::= "\\q"', r"the escape \\q is not supported"),
        ('root ::= "\\ud800"', "is no character"),
        ("root ::= <nope>", "given '<nope>'"),
        (
            "root ::= " + "(" * 101 + '"a"' + ")" * 101,
            "the nesting of format.grammar must be <= 100, given 101",
        ),
        ('root ::= "a"' + "?" * 50_000, "the nesting of format.grammar must be <= 100, given 101"),
        (
            "root ::= r1\n" + "\n".join(f'r{n} ::= "a"' for n in range(2001)),
            "rules of .* must be <= 2000, given 2001",
        ),
        (
            "start: T\nT: /a/" + " & /a/" * 17,
            "the number of & in format.grammar must be <= 16, given 17",
        ),
        ("start: <[^5]>", r"name the tokens that may come"),
        ("start: <nope>", "given '<nope>'"),
    ],
)
def test_a_grammar_that_cannot_be_honoured_says_why(text: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        compile_text(grammar(text))
