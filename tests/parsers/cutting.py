"""Runs the tests of parsers: however a text is cut, the folded deltas must be the same."""

import itertools
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ouzel.parsers.base import ContentDelta, Delta, Parser, ReasoningDelta, ToolCallDelta
from ouzel.types.step_output import FinishReason


@dataclass
class Folded:
    """The answer that a client assembles from the deltas."""

    content: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)  # name and arguments; ids are random


def check_parser(
    make_parser: Callable[[], Parser],
    text: str,
    expected: Folded,
    reason: FinishReason = FinishReason.STOP,
) -> None:
    for pieces in _cuttings(text):
        assert parse(make_parser, pieces, reason) == expected, pieces


def check_any_text(
    make_parser: Callable[[], Parser],
    fragments: Sequence[str],
    *,
    header: str | None = None,
    is_release: bool = False,
) -> None:
    """Checks random texts of the format's fragments and words.

    Nothing raises, no word is lost, and cuts change nothing. The format itself drops text that
    matches the regular expression `header`, such as the type of a call's arguments.
    """
    chance = random.Random("".join(fragments).encode(errors="surrogatepass"))
    for _ in range(5000 if is_release else 500):
        words = [f"w{number}w" for number in range(chance.randint(0, 4))]
        parts = words + chance.choices(fragments, k=chance.randint(0, 8))
        chance.shuffle(parts)
        text = "".join(parts)
        whole = parse(make_parser, [text])
        headers = "" if header is None else "".join(re.findall(header, text, re.DOTALL))
        for word in words:
            if word in headers:
                continue
            calls = [part for call in whole.calls for part in call]
            assert any(word in part for part in (whole.content, whole.reasoning, *calls)), text
        assert parse(make_parser, list(text)) == whole, text
        cut = chance.randrange(len(text) + 1)
        assert parse(make_parser, [text[:cut], text[cut:]]) == whole, (text[:cut], text[cut:])


def check_truncation(make_parser: Callable[[], Parser], text: str) -> None:
    """Checks that a prefix of a good output gives a prefix of its calls and loses only marks.

    A call that is incomplete when the text ends becomes content, unchanged.
    """
    whole = parse(make_parser, [text])
    for end in range(len(text)):
        prefix = text[:end]
        cut = parse(make_parser, [prefix], FinishReason.LENGTH)
        assert _is_prefix(cut.calls, whole.calls), prefix
        for given, expected in ((cut.content, whole.content), (cut.reasoning, whole.reasoning)):
            num_same = sum(1 for _ in itertools.takewhile(bool, map(str.__eq__, given, expected)))
            assert prefix.endswith(given[num_same:]), prefix
        assert _num_marks(prefix, cut) <= _num_marks(text, whole), prefix


def check_cut_marks(make_parser: Callable[[], Parser], text: str) -> None:
    """Checks a text of calls and marks that is cut after a call.

    The content may only be whole marks and the text after them.
    """
    marks = re.findall(r"<[^<>]+>|\[[A-Z_]+\]", text)
    for end in range(len(text)):
        cut = parse(make_parser, [text[:end]], FinishReason.LENGTH)
        if cut.calls:
            assert not cut.content or cut.content.lstrip().startswith(tuple(marks)), text[:end]


def _is_prefix(calls: list[tuple[str, str]], whole: list[tuple[str, str]]) -> bool:
    *before, (name, arguments) = calls or [("", "")]
    return not calls or (
        before == whole[: len(before)]
        and len(whole) > len(before)
        and name == whole[len(before)][0]
        and whole[len(before)][1].startswith(arguments)
    )


def _num_marks(text: str, folded: Folded) -> int:
    """Counts the characters that came out nowhere.

    Blanks and JSON's punctuation do not count: a parser may have made them.
    """
    given = (folded.content, folded.reasoning, *(part for call in folded.calls for part in call))
    return _num_counted(text) - sum(map(_num_counted, given))


def _num_counted(text: str) -> int:
    return sum(1 for char in text if char not in ' \t\r\n{}[]":,')


def parse(
    make_parser: Callable[[], Parser],
    pieces: Sequence[str],
    reason: FinishReason = FinishReason.STOP,
) -> Folded:
    parser = make_parser()
    return fold([delta for piece in pieces for delta in parser.feed(piece)] + parser.finish(reason))


def fold(deltas: Sequence[Delta]) -> Folded:
    folded = Folded()
    for delta in deltas:
        match delta:
            case ContentDelta(text):
                assert text, "a delta is never empty"
                folded.content += text
            case ReasoningDelta(text):
                assert text, "a delta is never empty"
                folded.reasoning += text
            case ToolCallDelta():
                _fold_call(folded.calls, delta)
    return folded


def _fold_call(calls: list[tuple[str, str]], delta: ToolCallDelta) -> None:
    if delta.index == len(calls):
        assert delta.id and delta.name, "the first piece of a call carries its id and name"
        calls.append((delta.name, ""))
    name, arguments = calls[delta.index]
    calls[delta.index] = (name, arguments + delta.arguments)


def _cuttings(text: str) -> Iterator[list[str]]:
    yield [text]
    yield list(text)
    chance = random.Random(text.encode(errors="surrogatepass"))
    for _ in range(100):
        num_cuts = chance.randint(1, max(1, len(text) // 3))
        edges = [0, *sorted(chance.choices(range(len(text) + 1), k=num_cuts)), len(text)]
        yield [text[start:end] for start, end in itertools.pairwise(edges)]
