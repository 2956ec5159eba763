"""Compiles a grammar text to a matcher of llguidance and makes its first mask, where some limits
are checked.

Native compilation recurses: a long chain of references overflows an ordinary stack and kills the
process. So it may run only in threads with a stack of `STACK_BYTES` (address space, not memory),
and sizes are limited before.
"""

import re

from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

STACK_BYTES = 256 * 2**20

LIMITS = LLParserLimits(
    max_items_in_row=5_000,  # an object with the maximum number of optional properties has 4,000
    # a mask then takes up to a third of a second, for which all sequences wait
    step_max_items=20_000,
    max_lexer_states=50_000,  # 1 KiB each; a text of bounded length needs one for each character
    max_grammar_size=60_000,  # symbols; the maximum number of properties has 50,000
    verbose_errors=False,
)

MAX_MESSAGE_CHARS = 1000

_PLACE = re.compile(r"^at \d+\(\d+\): (failed to compile JSON schema: )?")
_SOURCE_LINE = re.compile(r"\s*(\d+ \||\^\s*$|<non-verbose/>)")


class GrammarRefused(Exception):
    """The grammar cannot be used; the message is for the client."""


def compile_matcher(tokenizer: LLTokenizer, grammar: str) -> LLMatcher:
    """Compiles a grammar and makes its first mask. Raises GrammarRefused."""
    try:
        matcher = LLMatcher(tokenizer, grammar, log_level=0, limits=LIMITS)
        if not matcher.is_error():
            fill_next_token_bitmask(matcher, allocate_token_bitmask(1, tokenizer.vocab_size))
    except (MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library's panics are not subclasses of Exception
        raise GrammarRefused(
            f"the grammar cannot be compiled: {error}"[:MAX_MESSAGE_CHARS]
        ) from error
    if matcher.is_error():
        raise GrammarRefused(_rewrite_for_client(matcher.get_error()))
    return matcher


def _rewrite_for_client(message: str) -> str:
    """Rewrites an error of llguidance for the client.

    Drops positions and lines of the grammar text, which the client did not write, and the engine's
    options.
    """
    if "coerce_one_of" in message:
        return "the schemas of oneOf must exclude each other: no value may be valid by two of them"
    if "NoExtensionBias" in message:
        return "no text fits the grammar"
    lines = [line for line in message.splitlines() if line.strip() and not _SOURCE_LINE.match(line)]
    return _PLACE.sub("", "\n".join(lines))[:MAX_MESSAGE_CHARS]
