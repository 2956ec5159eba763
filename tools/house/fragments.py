"""Guesses whether a docstring begins with a whole sentence.

The first sentence must have more finite verbs than words that open a clause of their own ("what",
"that", "where"): "What follows the last event." has one of each, so its main clause has no verb.
A list has the verbs. A verb that is not in the list counts as none, so the guess is a hint.
"""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPENERS = _words(
    """
    what whatever which who whoever whom whose that where wherever when while if how whether
    because since
    """
)
_RELATIVES = _words("that which who where when what if they we you people others kin")
_AUXILIARIES = _words(
    """
    is are was were has have had does do did can cannot may might must will would shall should
    could isn't aren't doesn't don't can't won't
    """
)
_PAST = _words(
    "became began came gave said stood took went wrote made found knew kept ran left fell grew"
)
_VERBS = _words(
    """
    abort accept add adjust admit advance agree allocate allow announce append apply arrive ask
    assert assign avoid await ban become begin belong blame blend bring build cancel carry
    choose clear close collect combine come compare compile complete compress compute configure
    confirm connect consist consume contain convert copy correct create cross cut decide decode
    decrease define delete demand deny depend derive describe detect determine differ disable
    divide download drain draw drop enable encode end ensure enter estimate evict exceed exclude
    exist exit expect explain extend fail fetch fill find finish fit fold follow forbid forget
    free gather generate get give go grow guess handle happen heed hide hold honour ignore
    implement import improve include increase inherit inspect install invent join judge keep
    know lack launch lay lead learn leave let lie list listen load look lose lower make matter
    mean meet merge mix modify move multiply need notify obey occur offer omit open override
    overwrite own pack pad parse pass perform pick prefer prepare prevent print probe produce
    propose protect prove provide publish put raise reach read receive reckon recurse reduce
    refer refuse register reject release rely remain remember remove rename render renew repeat
    replace represent require reset resize resolve restore retain retry return reuse round run
    save say scan schedule see seem select send separate serve set shorten show shrink silence
    skip sort speak specify spell split spread squeeze stand start stay stop store suit supply
    support surround take tell terminate think throw translate treat trust try turn undo
    understand unpack update use validate vary verify wait walk want warn weigh widen wish work
    wrap write yield
    """
)
_NOUNS_TOO = _words(
    """
    answer block bound break call cause change chart check control cost count default double
    execute export file filter form frame function guard hand help label layer level limit line
    lock log map mark match measure model name note number order output owe pair piece place
    plan point position post query queue quote rank record report request respond result sample
    scale score search share size speed state step stream subtract sum table test time track
    value watch
    """
)
_DETERMINERS = _words(
    "a an the its their each every all both one no it them these this any some at most"
)


def _third_person(verb: str) -> frozenset[str]:
    if verb.endswith(("s", "x", "ch", "sh", "o")):
        return frozenset({f"{verb}es"})
    return frozenset({re.sub(r"(?<![aeou])y$", "ie", verb) + "s"})


_THIRD_PERSON = frozenset().union(*map(_third_person, _VERBS))
_NOUN_PLURALS = frozenset().union(*map(_third_person, _NOUNS_TOO))
_FINITE = _THIRD_PERSON | _NOUN_PLURALS | _VERBS | _PAST
# No finite verb follows these words: "to write", "its names".
_BEFORE_OTHERS = _AUXILIARIES | _words(
    "to a an the its their our no each every one of by for in with these those two"
)


def is_fragment(docstring: str) -> bool:
    words = re.findall(r"[a-z]+(?:'[a-z]+)?", _first_sentence(docstring).lower())
    if not words or _begins_with_verb(words):
        return not words
    num_openers = num_verbs = 0
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        num_openers += word in _OPENERS and after != "of"
        num_verbs += _is_finite(word, before)
    return num_verbs <= num_openers


def _begins_with_verb(words: list[str]) -> bool:
    """Tells whether the function is the subject: "Returns …", or another "…s" before "the"."""
    after = words[1] if len(words) > 1 else ""
    return (
        words[0] in _THIRD_PERSON | {"is", "has", "does", "see"}
        or (words[0] in _NOUN_PLURALS and after not in {"of", "that", "which", "for", "in"})
        or (words[0].endswith("s") and after in _DETERMINERS and words[0] not in {"this", "its"})
    )


def _is_finite(word: str, before: str) -> bool:
    if word in _NOUNS_TOO:  # "clients name", "which name"
        return before in _RELATIVES or before.endswith("s")
    return word in _AUXILIARIES or (word in _FINITE and before not in _BEFORE_OTHERS)


def _first_sentence(docstring: str) -> str:
    """Returns the text before the first full stop, semicolon or empty line, with "it" for code."""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    plain = re.sub(r"``?[^`]*``?", "it", paragraph)
    return re.split(r"(?<!e\.g)(?<!i\.e)[.;](?:\s|$)", plain)[0]
