"""Finds clauses in the place of a noun: "returns what was read", "those of the model".

The style of the house repeats the noun: "returns the text that was read". A relative clause that
follows its noun is plain English and is not found. The finder knows words, not grammar: it misses
some clauses and reports a few sentences that are good.

Rules
1. Text in backquotes and in double quotes counts as one noun.
2. "what", "whatever", "whoever", "whomever" and "whichever" always count.
3. "which", "who", "whom" and "whose" count at the beginning of a sentence or clause, and after a
   preposition at its beginning: "By which names", "says for whom". "who" also counts after a verb.
4. "that of", "those of", "those that", "one that", "all that" and their like count.
5. "as it does" and "as the others do" count; "as it is" does not.
"""

import re

_PREPOSITIONS = (
    "of|in|by|for|with|without|at|on|from|to|into|about|after|before|behind|below|beside|between|"
    "beyond|under|above|over|through|until|within|against|beneath|like|than|upon|onto"
)
_RELATIVES = "that|which|who|whom|whose"
_AUXILIARIES = "is|are|was|were|has|have|had|does|do|did|can|may|must|will|would|should|cannot"

# Words after which "who" has no noun. A verb that is also a noun stands in its third person.
_VERBS = (
    "says?|said|tells?|told|knows?|known|asks?|asked|decides?|decided|chooses?|chosen|sees?|seen|"
    "finds?|found|shows|shown|learns?|learnt|learned|remembers?|forgets?|returns|gives?|given|"
    "gets?|takes?|keeps?|kept|makes?|made|"
    "reads|writes?|holds|adds?|counts|names|means?|depends?|matters?|notes|checks|sends?|"
    "refuses?|lets?|leaves|has|have|is|are|was|were|be|do|does|not|waits?|meets?|drops?|"
    "skips?|treats|covers?|follows?|replaces?|describes?|determines?|stops|wakes?|serves?|helps?"
)
_CLAUSE_START = r"(?:^|(?<=[.!?:;(—–] )|(?<=\())"

_PATTERNS = (
    r"\bwhat(?:ever|soever)?\b(?!')",
    r"\bwhat's\b",
    r"\b(?:whoever|whomever|whosoever|whichever|who's)\b",
    rf"{_CLAUSE_START}(?:and |or |but )?(?:(?:{_PREPOSITIONS}) )?(?:which|who|whom|whose)\b",
    rf"\b(?:{_VERBS}|{_PREPOSITIONS}|and|or|but|than|as|, if) who\b",
    rf"\b(?:{_VERBS}|and|or|but) (?:{_PREPOSITIONS}) (?:which|whom|whose)\b",
    r"\bfor whom\b",
    r"\b(?<!\bso )(?<!\bsays )(?<!\bsay )(?<!\bmeans )(?<!\bnote )that of\b",
    r"\bthat which\b",
    rf"\bthose (?:{_RELATIVES}|{_PREPOSITIONS}|{_AUXILIARIES})\b",
    r"\bthose (?:alone|only|not|as|a|the|it|they|we)\b",
    r"\bthese (?:that|which|who|whose|of)\b",
    r"\bthose(?= ?(?:[.,;:)]|$))",
    rf"\b(?<!\bno )ones? (?:{_RELATIVES})\b",
    r"\bthe ones? (?:of|in which|for which|it|they|we)\b",
    r"\b(?:all|any|each|none|others|several|some|both|few|many|most|two|first|last) "
    r"(?:which|who|whose|that(?! ?(?:[.,;:)]|$)))\b",
    rf"{_CLAUSE_START}that (?:of|which|it|they|the|a|an|no|each)\b",
    r"\b(?:returns|yields|gives|takes|reads|keeps|uses|counts|sets) that(?= ?(?:[.,;:)]|$))",
    r"\bas (?:it|they|he|that|those|others|(?:the|any|every|no) others?) (?:do|does|did)\b",
)
_HANGING = re.compile("|".join(f"(?:{pattern})" for pattern in _PATTERNS), re.IGNORECASE)
_CANDIDATE = re.compile(
    r"wh(?:at|o|ich)|th(?:at|ose|ese)|\bas (?:it|they|th|an|ev|ea|no|ot|he)|\bones?\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"``.*?``|`[^`]*`|\"[^\"]*\"", re.DOTALL)


def find_hanging(text: str) -> str | None:
    """Returns the first clause in the place of a noun, with some words around it."""
    if not _CANDIDATE.search(text):
        return None
    plain = " ".join(_CODE.sub("X", text).split())
    if (match := _HANGING.search(plain)) is None:
        return None
    begin = max(plain.rfind(" ", 0, max(match.start() - 25, 0)), 0)
    return plain[begin : match.end() + 30].strip()


_POINTING = re.compile(r"(?:It|They|Those|Its|Their)\b|[A-Z][a-z]+s (?:it|them|those)\b")


def is_pointing(docstring: str) -> bool:
    """Tells whether a docstring begins with a pronoun, or with a verb and one: "Returns them"."""
    return _POINTING.match(docstring) is not None
