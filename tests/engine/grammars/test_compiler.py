"""Grammar texts to sessions, and sessions to masks."""

import json
from concurrent.futures import wait

import numpy as np
import pytest

from ouzel.engine.grammars.compiler import GrammarCompiler, GrammarRefused
from ouzel.engine.grammars.session import GrammarBroken, Masks, Session
from ouzel.engine.grammars.tokenizer import build_tokenizer
from ouzel.errors import ModelLoadError
from ouzel.grammar.caps import MAX_GRAMMAR_CHARS
from tests.grammar.tokenizers import grammar_tokenizer, special_ids, trained_tokenizer

OBJECT = 'start: %json {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(grammar_tokenizer())


def compiled(compiler: GrammarCompiler, grammar: str) -> Session:
    compilation = compiler.compile(grammar)
    compilation.wait(60)
    return compilation.session()


def allowed(session: Session) -> set[int]:
    row = np.zeros(512, np.float32)
    assert Masks(512).apply([row], [session]) == [""]
    return set(np.flatnonzero(np.isfinite(row)).tolist())


def test_a_session_allows_what_fits_and_ends(compiler: GrammarCompiler) -> None:
    session = compiled(compiler, OBJECT)
    for token_id in trained_tokenizer().encode('{"a": 1').ids:
        assert token_id in allowed(session)
        session.accept(token_id)
    session.accept(trained_tokenizer().encode("}").ids[0])
    assert session.is_complete
    assert allowed(session) == {special_ids()["<|im_end|>"]}


def test_what_does_not_fit_is_refused(compiler: GrammarCompiler) -> None:
    session = compiled(compiler, OBJECT)
    with pytest.raises(GrammarBroken):
        session.accept(trained_tokenizer().encode("x").ids[0])


def test_forks_go_their_own_ways(compiler: GrammarCompiler) -> None:
    session = compiled(compiler, 'start: "a" | "b"')
    fork = session.fork()
    session.accept(trained_tokenizer().encode("a").ids[0])
    assert session.is_complete
    fork.accept(trained_tokenizer().encode("b").ids[0])
    assert fork.is_complete


def test_forced_text_is_in_the_tokenizers_own_spelling(compiler: GrammarCompiler) -> None:
    text = '{"name": "get_weather", "arguments": '
    session = compiled(compiler, f'start: {json.dumps(text)} ("x" | "y")')
    assert session.forced()[:3] == trained_tokenizer().encode(text).ids[:3]


def test_marks_are_single_tokens_and_no_text(compiler: GrammarCompiler) -> None:
    think = special_ids()["</think>"]
    session = compiled(compiler, f'start: T <[{think}]> "x"\nT: /(?s:.*)/')
    assert think in allowed(session)
    spelled = compiled(compiler, 'start: "</think>"')  # as a client's schema may have it
    for token_id in grammar_tokenizer().tokenize_str("</think>"):
        assert token_id in allowed(spelled)
        assert token_id != think
        spelled.accept(token_id)
    assert spelled.is_complete


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ("start: nowhere", "nowhere"),
        ('start: %json {"not": {}}', "not"),
        (
            'start: %json {"type": "integer", "minimum": 2, "maximum": 1}',
            r"^Unsatisfiable schema: minimum \(2\) is greater than maximum \(1\)$",
        ),
        (
            'start: %json {"oneOf": [{"type": "integer"}, {"type": "number"}]}',
            "^the schemas of oneOf must be such that",
        ),
        ("", "."),
        ("x" * (MAX_GRAMMAR_CHARS + 1), "<= 524288 characters long, given 524289"),
    ],
)
def test_a_bad_grammar_says_why(compiler: GrammarCompiler, grammar: str, message: str) -> None:
    with pytest.raises(GrammarRefused, match=message):
        compiled(compiler, grammar)


def test_a_long_chain_of_references_does_not_overflow_the_stack(compiler: GrammarCompiler) -> None:
    rules = "\n".join(f"r{number}: r{number + 1}" for number in range(5000))
    session = compiled(compiler, f'start: r0\n{rules}\nr5000: "a"')
    assert trained_tokenizer().encode("a").ids[0] in allowed(session)


def test_one_that_takes_too_long_is_given_up_and_others_are_served() -> None:
    hurried = GrammarCompiler(grammar_tokenizer(), timeout_s=0.05)
    slow = "start: " + " | ".join(f'"{number}"' for number in range(30_000))
    late = [hurried.compile(slow + f' | "x{number}"') for number in range(2)]
    for compilation in late:
        compilation.wait(60)
        with pytest.raises(GrammarRefused, match=r"takes longer than 0\.05 s"):
            compilation.session()
    other = hurried.compile('start: "a"')
    wait((other.future,))
    assert other.session().is_complete is False
    hurried.close()


def test_one_that_waits_behind_those_given_up_gets_its_turn() -> None:
    hurried = GrammarCompiler(grammar_tokenizer(), timeout_s=0.05)
    slow = "start: " + " | ".join(f'"{number}"' for number in range(30_000))
    late = [hurried.compile(slow + f' | "x{number}"') for number in range(2)]
    waits = hurried.compile('start: "a"')
    while not waits.future.done():
        hurried.go_on()
        waits.wait(0.001)

    assert waits.session().is_complete is False
    assert not any(compilation.future.done() for compilation in late)
    hurried.close()


def test_closing_begins_nothing_that_waits() -> None:
    compiler = GrammarCompiler(grammar_tokenizer(), timeout_s=60)
    slow = "start: " + " | ".join(f'"{number}"' for number in range(10_000))
    waiting = [compiler.compile(slow + f' | "x{number}"') for number in range(50)]

    compiler.close()

    assert not waiting[-1].future.done()


def test_a_broken_session_is_not_complete_and_forces_nothing(compiler: GrammarCompiler) -> None:
    session = compiled(compiler, 'start: "abc"')
    with pytest.raises(GrammarBroken):
        session.accept(trained_tokenizer().encode("x").ids[0])

    assert not session.is_complete
    with pytest.raises(GrammarBroken, match="satisfy"):
        session.forced()


def test_masks_of_a_batch_are_made_together(compiler: GrammarCompiler) -> None:
    rows = [np.zeros(512, np.float32) for _ in range(3)]
    sessions = [compiled(compiler, f'start: "{letter}"') for letter in "abc"]
    assert Masks(512).apply(rows, sessions) == ["", "", ""]
    for row, letter in zip(rows, "abc", strict=True):
        assert np.flatnonzero(np.isfinite(row)).tolist() == trained_tokenizer().encode(letter).ids


def test_a_session_that_hits_a_limit_says_so(compiler: GrammarCompiler) -> None:
    names = {f"field_{number}": {"type": "integer"} for number in range(60_000)}
    with pytest.raises(GrammarRefused):
        compiled(compiler, "start: %json " + str({"type": "object", "properties": names}).replace("'", '"'))


def test_a_tokenizer_without_an_end_token_is_refused() -> None:
    with pytest.raises(ModelLoadError, match="no end token"):
        build_tokenizer(trained_tokenizer().to_str(), vocab_size=512, eos_token_ids=())


def test_a_refusal_does_not_quote_the_grammar(compiler: GrammarCompiler) -> None:
    with pytest.raises(GrammarRefused) as refusal:
        compiled(compiler, 'start: %json {"oneOf": [{"type": "integer"}, {"type": "number"}]}')
    assert "oneOf" in str(refusal.value)
    assert "start:" not in str(refusal.value)


def test_an_empty_language_is_refused(compiler: GrammarCompiler) -> None:
    with pytest.raises(GrammarRefused, match="no text fits the grammar"):
        compiled(compiler, "start: T\nT: /a/ & /b/")


def test_grammars_that_took_long_make_room_for_others() -> None:
    """They are large: 256 of them would fill the memory."""
    compiler = GrammarCompiler(grammar_tokenizer())
    heavy = [compiler.compile(f'start: "{number}" /[a-z]+/') for number in range(6)]
    wait([compilation.future for compilation in heavy], 60)
    for compilation in heavy:
        compilation.cpu_s = 1.0
    last = compiler.compile('start: "x"')

    assert compiler.compile('start: "x"') is last
    assert [compiler.compile(each.grammar) is each for each in reversed(heavy)] == [*[True] * 5, False]
    compiler.close()


def test_as_many_optional_properties_as_are_allowed_fit_into_the_limits(compiler: GrammarCompiler) -> None:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(1000)}}
    session = compiled(compiler, "start: %json " + json.dumps(schema))
    for token_id in trained_tokenizer().encode('{"p0": "a","p7":"b", "p70":"c","other":"d",').ids:
        assert token_id in allowed(session)
        session.accept(token_id)
