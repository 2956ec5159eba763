"""Guesses whether a docstring begins with a whole sentence.

Its first sentence has to have more finite verbs than words that open a clause of their own ("what", "that", "where"):
"What follows the last event." has one of each, so nothing is said about what follows. Verbs are known by a list, and
one that is not in the list counts as none: this is a hint and no judgement.
"""

import re
from itertools import pairwise


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPENERS = _words(
    "what whatever which who whoever whom whose that where wherever when while if how whether"
)
_AUXILIARIES = _words(
    "is are was were has have had does do did can cannot may might must will would shall should could"
)
_PAST = _words("became began came gave said stood took went wrote")
_VERBS = _words("""
    abort add adjust admit allocate allow announce append apply arrive ask assert become begin belong bring cancel
    carry check choose close come compile compress compute connect contain count cut decide decode delete demand
    depend describe differ divide drain drop encode exit expect extend fail fill find finish follow forbid forget
    free generate get give go grow guess happen hold honour implement keep know lay lead learn leave let lie like
    listen look lose make mean meet merge need obey open own pass prepare print put raise reach read recurse refuse
    release remember remove render renew repeat replace return run say schedule see send separate serve show sort
    speak split stand start stay stop store surround take tell think throw turn understand unpack use wait walk want
    wish write
""")
_NOUNS_TOO = _words("""
    answer call end execute form guard load lock log mark match name note order owe point quote sample search share step
""")

_THIRD_PERSON = frozenset(
    form
    for verb in _VERBS | _NOUNS_TOO
    for form in (f"{verb}s", f"{verb}es", re.sub("y$", "ies", verb))
    if form != verb
)
_FINITE = _THIRD_PERSON | _VERBS | _PAST  # of those that are nouns too, the third person only
_BEFORE_OTHERS = _AUXILIARIES | _words(
    "to a an the its their our no each every one of by"
)  # "to write", "its names"


def is_fragment(docstring: str) -> bool:
    words = re.findall(r"[a-z]+(?:'[a-z]+)?", _first_sentence(docstring).lower())
    if words and words[0] in _THIRD_PERSON:  # "Returns ...": the function is the subject
        return False
    num_openers = sum(word in _OPENERS for word in words)
    num_verbs = sum(_is_finite(word, before) for before, word in pairwise(["", *words]))
    return num_verbs <= num_openers


def _is_finite(word: str, before: str) -> bool:
    return word in _AUXILIARIES or (word in _FINITE and before not in _BEFORE_OTHERS)


def _first_sentence(docstring: str) -> str:
    """Returns what stands before the first full stop, semicolon or empty line; quoted code is an "it"."""
    plain = re.sub(r"``?[^`]*``?", "it", " ".join(docstring.partition("\n\n")[0].split()))
    return re.split(r"(?<!e\.g)(?<!i\.e)[.;](?:\s|$)", plain)[0]
