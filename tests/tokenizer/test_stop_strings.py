import random

import pytest

from ouzel.tokenizer.stop_strings import StopResult, StopStringMatcher


def run(matcher: StopStringMatcher, pieces: list[str]) -> tuple[str, str | None]:
    text = ""
    for piece in pieces:
        result = matcher.feed(piece)
        text += result.text
        if result.matched is not None:
            return text, result.matched
    return text + matcher.finish(), None


@pytest.mark.parametrize(
    ("stop_strings", "text", "expected", "matched"),
    [
        ((), "anything", "anything", None),
        (("END",), "no such thing", "no such thing", None),
        (("END",), "one END two", "one ", "END"),
        (("END",), "EN", "EN", None),  # held back, then given by finish()
        (("aab",), "aaab", "a", "aab"),
        (("abab", "b"), "xabab", "xa", "b"),  # complete first
        (("cd", "bcd"), "abcd", "a", "bcd"),  # complete together: the longest
        (("ababc",), "abababc!", "ab", "ababc"),
        (("\n\n", "。"), "文\n章。", "文\n章", "。"),
        (("abcd", "bcx"), "abcx", "a", "bcx"),
    ],
)
def test_stop_strings(
    stop_strings: tuple[str, ...], text: str, expected: str, matched: str | None
) -> None:
    chance = random.Random(1)
    cuttings = [[text], list(text)]
    for _ in range(50):
        cut = sorted(chance.choices(range(len(text) + 1), k=2))
        cuttings.append([text[: cut[0]], text[cut[0] : cut[1]], text[cut[1] :]])
    for pieces in cuttings:
        assert run(StopStringMatcher(stop_strings), pieces) == (expected, matched)
        shown = expected + (matched or "")
        assert run(StopStringMatcher(stop_strings, include_in_output=True), pieces) == (
            shown,
            matched,
        )


def test_only_what_may_become_a_stop_string_is_held_back() -> None:
    matcher = StopStringMatcher(("<stop>",))
    assert matcher.feed("a <st") == StopResult("a ", None)
    assert matcher.feed("ar> <") == StopResult("<star> ", None)
    assert matcher.finish() == "<"


def test_a_shown_stop_string_is_not_held_back() -> None:
    matcher = StopStringMatcher(("<stop>",), include_in_output=True)
    assert matcher.feed("a <st") == StopResult("a <st", None)
    assert matcher.feed("op> b") == StopResult("op>", "<stop>")


def test_random_texts_stop_at_the_first_complete_string() -> None:
    chance = random.Random(2)
    for _ in range(500):
        text = "".join(chance.choices("ab", k=12))
        stop_strings = tuple(
            "".join(chance.choices("ab", k=chance.randint(2, 5))) for _ in range(2)
        )
        ends = [
            (text.find(stop) + len(stop), -len(stop), stop) for stop in stop_strings if stop in text
        ]
        end, _, matched = min(ends, default=(len(text), 0, None))
        expected = text[: end - len(matched or "")]
        assert run(StopStringMatcher(stop_strings), list(text)) == (expected, matched)
