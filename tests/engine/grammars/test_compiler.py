"""Grammar texts become sessions, and sessions become masks."""

import contextlib
import json
import weakref
from concurrent.futures import wait

import numpy as np
import psutil
import pytest

from ouzel.engine.grammars.compilation import CompilerOverloaded
from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.grammars.matcher import GrammarRefused
from ouzel.engine.grammars.session import GrammarBroken, Masks, Prototype, Session
from ouzel.engine.grammars.tokenizer import build_tokenizer
from ouzel.errors import ModelLoadError
from ouzel.grammar.caps import MAX_GRAMMAR_CHARS
from tests.grammar.tokenizers import grammar_tokenizer, special_ids, trained_tokenizer

OBJECT = (
    'start: %json {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}'
)


@pytest.fixture(scope="module")
def compiler() -> GrammarCompiler:
    return GrammarCompiler(grammar_tokenizer())


def compile_session(compiler: GrammarCompiler, grammar: str) -> Session:
    compilation = compiler.compile(grammar)
    compilation.wait(60)
    return compilation.session()


def allowed(session: Session) -> set[int]:
    row = np.zeros(512, np.float32)
    assert Masks(512).apply([row], [session]) == [""]
    return set(np.flatnonzero(np.isfinite(row)).tolist())


def test_a_session_allows_fitting_text_and_its_end(compiler: GrammarCompiler) -> None:
    session = compile_session(compiler, OBJECT)
    for token_id in trained_tokenizer().encode('{"a": 1').ids:
        assert token_id in allowed(session)
        session.accept(token_id)
    session.accept(trained_tokenizer().encode("}").ids[0])
    assert session.is_complete
    assert allowed(session) == {special_ids()["<|im_end|>"]}


def test_text_that_does_not_fit_is_refused(compiler: GrammarCompiler) -> None:
    session = compile_session(compiler, OBJECT)
    with pytest.raises(GrammarBroken):
        session.accept(trained_tokenizer().encode("x").ids[0])


def test_forks_go_their_own_ways(compiler: GrammarCompiler) -> None:
    session = compile_session(compiler, 'start: "a" | "b"')
    fork = session.fork()
    session.accept(trained_tokenizer().encode("a").ids[0])
    assert session.is_complete
    fork.accept(trained_tokenizer().encode("b").ids[0])
    assert fork.is_complete


def test_forced_text_is_in_the_tokenizers_own_spelling(compiler: GrammarCompiler) -> None:
    text = '{"name": "get_weather", "arguments": '
    session = compile_session(compiler, f'start: {json.dumps(text)} ("x" | "y")')
    assert session.forced()[:3] == trained_tokenizer().encode(text).ids[:3]


def test_marks_are_single_tokens_and_no_text(compiler: GrammarCompiler) -> None:
    think = special_ids()["</think>"]
    session = compile_session(compiler, f'start: T <[{think}]> "x"\nT: /(?s:.*)/')
    assert think in allowed(session)
    spelled = compile_session(compiler, 'start: "</think>"')  # a client's schema may have this text
    for token_id in grammar_tokenizer().native.tokenize_str("</think>"):
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
            "^the schemas of oneOf must exclude each other",
        ),
        ("", "."),
        ("x" * (MAX_GRAMMAR_CHARS + 1), "<= 524288 characters long, given 524289"),
    ],
)
def test_a_bad_grammar_says_why(compiler: GrammarCompiler, grammar: str, message: str) -> None:
    with pytest.raises(GrammarRefused, match=message):
        compile_session(compiler, grammar)


def test_a_long_chain_of_references_does_not_overflow_the_stack(compiler: GrammarCompiler) -> None:
    rules = "\n".join(f"r{number}: r{number + 1}" for number in range(5000))
    session = compile_session(compiler, f'start: r0\n{rules}\nr5000: "a"')
    assert trained_tokenizer().encode("a").ids[0] in allowed(session)


def hostile(number: int) -> str:
    """Returns a grammar whose compilation takes minutes and all available memory."""
    return f'start: %json {{"type": "integer", "multipleOf": {99_400_891 + 2 * number}}}'


def test_a_compilation_that_takes_too_long_is_given_up_and_leaves_nothing() -> None:
    hurried = GrammarCompiler(grammar_tokenizer(), timeout_s=0.1)
    compile_session(hurried, 'start: "a"')
    before = psutil.Process().memory_info().rss
    with pytest.raises(GrammarRefused, match=r"^compiling the grammar takes longer than 0\.1 s$"):
        compile_session(hurried, hostile(0))
    hurried.close()

    assert psutil.Process().memory_info().rss - before < 4 * 2**20


def test_many_long_compilations_leave_others_their_turn() -> None:
    hurried = GrammarCompiler(grammar_tokenizer(), timeout_s=600, quick_s=0.05)
    late = [hurried.compile(hostile(number)) for number in range(7)]
    others = [hurried.compile(f'start: "a{number}"') for number in range(3)]
    wait([each.future for each in others])

    assert [each.session().is_complete for each in others] == [False] * 3
    assert not any(each.future.done() for each in late)
    hurried.close()


def test_a_grammar_that_takes_too_much_memory_is_refused() -> None:
    compiler = GrammarCompiler(grammar_tokenizer(), timeout_s=600, max_bytes=4 * 2**20)
    with pytest.raises(GrammarRefused, match="takes more than 4 MiB of memory"):
        compile_session(compiler, hostile(0))
    compiler.close()


def test_closing_begins_no_waiting_compilation() -> None:
    compiler = GrammarCompiler(grammar_tokenizer(), timeout_s=60)
    slow = "start: " + " | ".join(f'"{number}"' for number in range(10_000))
    waiting = [compiler.compile(slow + f' | "x{number}"') for number in range(50)]

    compiler.close()

    assert not waiting[-1].future.done()


def test_a_broken_session_is_not_complete_and_forces_nothing(compiler: GrammarCompiler) -> None:
    session = compile_session(compiler, 'start: "abc"')
    with pytest.raises(GrammarBroken):
        session.accept(trained_tokenizer().encode("x").ids[0])

    assert not session.is_complete
    with pytest.raises(GrammarBroken, match="satisfy"):
        session.forced()


def test_masks_of_a_batch_are_made_together(compiler: GrammarCompiler) -> None:
    rows = [np.zeros(512, np.float32) for _ in range(3)]
    sessions = [compile_session(compiler, f'start: "{letter}"') for letter in "abc"]
    assert Masks(512).apply(rows, sessions) == ["", "", ""]
    for row, letter in zip(rows, "abc", strict=True):
        assert np.flatnonzero(np.isfinite(row)).tolist() == trained_tokenizer().encode(letter).ids


def test_a_session_that_hits_a_limit_says_so(compiler: GrammarCompiler) -> None:
    names = {f"field_{number}": {"type": "integer"} for number in range(60_000)}
    with pytest.raises(GrammarRefused):
        compile_session(
            compiler,
            "start: %json " + str({"type": "object", "properties": names}).replace("'", '"'),
        )


def test_a_tokenizer_without_an_end_token_is_refused() -> None:
    with pytest.raises(ModelLoadError, match="no end token"):
        build_tokenizer(trained_tokenizer().to_str(), vocab_size=512, eos_token_ids=())


def test_a_refusal_does_not_quote_the_grammar(compiler: GrammarCompiler) -> None:
    with pytest.raises(GrammarRefused) as refusal:
        compile_session(
            compiler, 'start: %json {"oneOf": [{"type": "integer"}, {"type": "number"}]}'
        )
    assert "oneOf" in str(refusal.value)
    assert "start:" not in str(refusal.value)


def test_an_empty_language_is_refused(compiler: GrammarCompiler) -> None:
    with pytest.raises(GrammarRefused, match="no text fits the grammar"):
        compile_session(compiler, "start: T\nT: /a/ & /b/")


def compile_prototype(compiler: GrammarCompiler, grammar: str) -> Prototype:
    result = compiler.compile(grammar).future.result(60)
    assert isinstance(result, Prototype)
    return result


def test_large_grammars_make_room_for_others() -> None:
    compiler = GrammarCompiler(grammar_tokenizer())
    texts = [f'start: "{number}" /[a-z]+/' for number in range(6)]
    prototypes = [compile_prototype(compiler, text) for text in texts]
    for prototype in prototypes:
        prototype.num_bytes = 50 * 2**20
    last = compile_prototype(compiler, 'start: "x"')

    assert compile_prototype(compiler, 'start: "x"') is last
    for text, prototype in zip(texts[1:], prototypes[1:], strict=True):
        assert compile_prototype(compiler, text) is prototype
    assert compile_prototype(compiler, texts[0]) is not prototypes[0]
    compiler.close()


def test_growing_grammars_make_room_when_no_other_comes() -> None:
    compiler = GrammarCompiler(grammar_tokenizer())
    texts = [f'start: "{number}" /[a-z]+/' for number in range(6)]
    prototypes = [compile_prototype(compiler, text) for text in texts]
    for prototype in prototypes:
        prototype.num_tokens = 45 * 2**6  # the entries take 16 KiB each

    assert compile_prototype(compiler, texts[5]) is prototypes[5]
    for prototype in prototypes:
        prototype.num_tokens = 0
    assert compile_prototype(compiler, texts[1]) is prototypes[1]
    assert compile_prototype(compiler, texts[0]) is not prototypes[0]
    compiler.close()


def test_a_grammar_in_use_for_long_is_compiled_anew(compiler: GrammarCompiler) -> None:
    text = "start: /[a-z]*/"
    prototype = compile_prototype(compiler, text)
    session = prototype.session()
    token_id = trained_tokenizer().encode("a").ids[0]
    for _ in range(10_000):
        session.accept(token_id)

    assert compile_prototype(compiler, text) is not prototype
    assert token_id in allowed(session)


def test_the_size_of_grammars_in_use_is_bounded(compiler: GrammarCompiler) -> None:
    prototypes = [compile_prototype(compiler, f'start: "b{number}"') for number in range(2)]
    large = 'start: %json {"type": "integer", "multipleOf": 9973}'
    for prototype in prototypes:
        prototype.num_bytes = 2**29
    with pytest.raises(CompilerOverloaded, match="take too much memory"):
        compile_session(compiler, large)
    assert not compile_session(compiler, 'start: "small"').is_complete

    prototypes[0].num_bytes += 2**28
    with pytest.raises(CompilerOverloaded, match="take too much memory"):
        compile_session(compiler, 'start: "another"')
    del prototypes, prototype

    for grammar in (large, 'start: "another"'):
        assert not compile_session(compiler, grammar).is_complete


def test_a_stored_refusal_has_no_frames_of_the_compilation(compiler: GrammarCompiler) -> None:
    for _ in range(3):
        with pytest.raises(GrammarRefused) as refusal:
            compile_session(compiler, "start: nowhere")
        assert len(refusal.traceback) == 3  # this test, `compile_session`, the place of the raise


def test_only_the_refusal_of_a_refused_grammar_is_stored(compiler: GrammarCompiler) -> None:
    compilations = []
    for number in range(20):
        compilation = compiler.compile(f"start: nowhere{number}")
        assert isinstance(compilation.future.result(60), GrammarRefused)
        compilations.append(weakref.ref(compilation))
    del compilation

    # each thread still refers to its last job
    assert sum(each() is not None for each in compilations) <= 4
    with pytest.raises(GrammarRefused, match="nowhere0"):
        compile_session(compiler, "start: nowhere0")


def test_a_grammar_whose_process_is_killed_is_put_off_and_not_refused() -> None:
    before = set(psutil.Process().children())
    compiler = GrammarCompiler(grammar_tokenizer(), timeout_s=600)
    compile_session(compiler, 'start: "a"')
    (template,) = set(psutil.Process().children()) - before
    compilation = compiler.compile(hostile(0))
    while not compilation.future.done():
        for child in template.children():
            with contextlib.suppress(psutil.NoSuchProcess):  # the process may have ended meanwhile
                child.kill()

    with pytest.raises(CompilerOverloaded):
        compilation.session()
    assert compiler.compile(hostile(0)) is not compilation
    compiler.close()


def test_as_many_optional_properties_as_are_allowed_fit_into_the_limits(
    compiler: GrammarCompiler,
) -> None:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(1000)}}
    session = compile_session(compiler, "start: %json " + json.dumps(schema))
    for token_id in trained_tokenizer().encode('{"p0": "a","p7":"b", "p70":"c","other":"d",').ids:
        assert token_id in allowed(session)
        session.accept(token_id)
