"""Regular expressions are translated from a client's dialect."""

import pytest

from ouzel.grammar.errors import GrammarError
from ouzel.grammar.write.regex import read_pattern
from tests.grammar.runs import accepts, started


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^\d+$", ["1", "42"], ["", "a", "٣"]),
        (r"a.c", ["abc", "a\nc", "a😀c"], ["ac"]),
        (r"\w+\s\W", ["a_1 !", "b\n-"], ["é !", "a b"]),
        (r"[\w.-]+@[^\s@]+", ["a.b-c@d", "x@é"], ["@d", "a@ "]),
        (r"[a\-z\]/&&[^]{2}", ["a-", "]/", "&[", "^z"], ["b-", "a"]),
        (r"(?:ab|c)+?(?P<name>x)?(?<other>y)", ["abcy", "cxy"], ["x", "ab"]),
        (r"a{2}b{1,}c{0,2}", ["aab", "aabbcc"], ["ab", "aabccc"]),
        (r"{x}/\/", ["{x}//"], ["x"]),
        (r"\u00e9\x41\u{1F600}\t", ["éA😀\t"], ["e"]),
        (r"\p{Lu}\P{L}", ["É1"], ["é1", "ÉA"]),
        (r"^a$|^b$", ["a", "b"], ["ab"]),
        ("a\nb\t", ["a\nb\t"], ["ab"]),
        (r"\.\*\$\^\"'", [".*$^\"'"], ["."]),
        ("日本|[ぁ-ん]+", ["日本", "ねこ"], ["日"]),
        ("", [""], ["a"]),
    ],
)
def test_a_pattern_matches_the_whole_text(pattern: str, good: list[str], bad: list[str]) -> None:
    session = started({"type": "regex", "pattern": pattern})
    assert [text for text in good if not accepts(session, text)] == []
    assert [text for text in bad if accepts(session, text)] == []


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"a\b", r"the word boundary \\b"),
        (r"(a)\1", r"the back reference \\1"),
        (r"\k<a>", r"the back reference \\k"),
        ("(?=a)", "look-around"),
        ("(?!a)", "look-around"),
        ("(?<=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
        ("(?i)a", r"the group '\(\?i'"),
        (r"\cA", r"the escape \\c"),
        ("a^b", r"'\^' within"),
        ("(a$)", "'.' within"),
        ("(a", "a group without an end"),
        ("(" * 101 + ")" * 101, "the nesting of pattern must be <= 100, given 101"),
        ("a)", "a group without a beginning"),
        ("[a", "a character class without an end"),
        ("[]", "an empty character class"),
        ("a\\", "a backslash at its end"),
        ("a" * 10_241, "<= 10240, given 10241"),
    ],
)
def test_unsupported_parts_of_a_pattern_are_refused_by_name(pattern: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        read_pattern(pattern, "pattern")
