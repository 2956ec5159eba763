"""Runs texts and random walks through a grammar, with the token masks that the engine uses."""

from functools import lru_cache

import numpy as np

from ouzel.engine.grammars.compiler import GrammarCompiler
from ouzel.engine.grammars.session import Masks, Session
from ouzel.grammar.formats import Format, compile_format
from ouzel.grammar.vocabulary import GrammarVocabulary
from ouzel.parsers.registry import PARAMETER_STYLES
from tests.grammar.tokenizers import grammar_tokenizer, special_ids, trained_tokenizer

WIDTH = 512  # bits of a mask; the tokenizer has fewer ids
MASKS = Masks(WIDTH)


@lru_cache
def compiler() -> GrammarCompiler:
    return GrammarCompiler(grammar_tokenizer(WIDTH), timeout_s=60)


@lru_cache
def vocabulary() -> GrammarVocabulary:
    return GrammarVocabulary(special_ids(), trained_tokenizer().get_vocab_size(), (end_id(),))


def end_id() -> int:
    return special_ids()["<|im_end|>"]


def compile_text(format: Format, *, strict: bool = False) -> str:
    return compile_format(format, vocabulary(), strict=strict, styles=PARAMETER_STYLES)


def started(format: Format, *, strict: bool = False) -> Session:
    """Starts a session of the format's grammar. Raises GrammarError or GrammarRefused."""
    return started_from(compile_text(format, strict=strict))


def started_from(text: str) -> Session:
    """Starts a session of a grammar in its written form. Raises GrammarRefused."""
    compilation = compiler().compile(text)
    compilation.wait(60)
    return compilation.session()


def allowed(session: Session) -> list[int]:
    row = np.zeros(WIDTH, np.float32)
    assert MASKS.apply([row], [session]) == [""]
    return [int(token_id) for token_id in np.flatnonzero(np.isfinite(row))]


def accepts(session: Session, text: str) -> bool:
    """Tells whether the session accepts the whole text and then the end.

    Marks in the text are single tokens, as a model would generate them.
    """
    session = session.fork()
    for token_id in trained_tokenizer().encode(text).ids:
        if session.is_complete or token_id not in allowed(session):
            return False
        session.accept(token_id)
    return end_id() in allowed(session)


def random_walk(
    session: Session, random: np.random.Generator, *, max_tokens: int = 400
) -> str | None:
    """Returns a random text of the grammar, or None if it does not end within the limit.

    Half of the time the walk ends where it may, and it prefers tokens that close something.
    """
    session, token_ids = session.fork(), list[int]()
    while len(token_ids) < max_tokens:
        choices = allowed(session)
        if end_id() in choices and (len(choices) == 1 or random.random() < 0.5):
            return trained_tokenizer().decode(token_ids, skip_special_tokens=False)
        choices = [token_id for token_id in choices if token_id != end_id()]
        closing = [token_id for token_id in choices if token_id in _closing()]
        token_id = int(random.choice(closing if closing and random.random() < 0.4 else choices))
        session.accept(token_id)
        token_ids.append(token_id)
    return None


@lru_cache
def _closing() -> frozenset[int]:
    return frozenset(trained_tokenizer().encode(char).ids[0] for char in '"}],:')
