"""Guesses the part of speech of words with several pronunciations, from the words beside them.

There is no tagger: the rules know the commonest neighbours, and other words keep the lexicon's
default. The lexicons of misaki have the same tags.
"""

from collections.abc import Sequence

VERB, NOUN, ADJECTIVE, PAST = "VERB", "NOUN", "ADJ", "VBD"

_BEFORE_VERBS = frozenset(
    [
        "to",
        "will",
        "would",
        "can",
        "could",
        "should",
        "must",
        "may",
        "might",
        "shall",
        "cannot",
        "i",
        "we",
        "you",
        "they",
        "who",
        "let's",
        "please",
        "don't",
        "didn't",
        "doesn't",
        "won't",
        "can't",
        "couldn't",
        "wouldn't",
        "shouldn't",
        "i'll",
        "we'll",
        "you'll",
        "they'll",
        "he'll",
        "she'll",
        "it'll",
        "i'd",
        "we'd",
        "you'd",
        "they'd",
        "he'd",
        "she'd",
        "help",
    ]
)
_BEFORE_NOUNS = frozenset(
    [
        "a",
        "an",
        "the",
        "this",
        "that",
        "these",
        "those",
        "my",
        "your",
        "his",
        "her",
        "its",
        "our",
        "their",
        "some",
        "any",
        "no",
        "each",
        "every",
        "of",
        "in",
        "on",
        "with",
        "from",
        "for",
        "at",
        "by",
        "into",
        "another",
        "first",
        "last",
        "next",
        "new",
        "good",
        "great",
        "whose",
    ]
)
_SINGULAR = frozenset(["he", "she", "it"])
_HAVE = frozenset(
    [
        "have",
        "has",
        "had",
        "having",
        "i've",
        "we've",
        "you've",
        "they've",
        "he's",
        "she's",
        "haven't",
        "hasn't",
    ]
)
_BE = frozenset(
    [
        "be",
        "is",
        "are",
        "was",
        "were",
        "been",
        "being",
        "am",
        "it's",
        "that's",
        "isn't",
        "aren't",
        "wasn't",
        "weren't",
        "he's",
        "she's",
    ]
)
_ARTICLES = frozenset(
    [
        "the",
        "a",
        "an",
        "my",
        "your",
        "his",
        "her",
        "its",
        "our",
        "their",
        "this",
        "that",
        "these",
        "those",
        "all",
    ]
)
_PLACES = frozenset(
    [
        "in",
        "at",
        "on",
        "with",
        "near",
        "here",
        "there",
        "together",
        "alone",
        "forever",
        "longer",
        "by",
        "under",
        "within",
        "among",
    ]
)
_PAST_TIMES = frozenset(["yesterday", "ago", "already", "last", "before", "once"])
_PRONOUNS = frozenset(["i", "you", "he", "she", "it", "we", "they", "who"])


def guess_tag(words: Sequence[str], place: int) -> str | None:
    """Returns the tag of the word at a place of a clause, or None; words are in small letters."""
    word = words[place]
    before = words[place - 1] if place > 0 else ""
    after = words[place + 1] if place + 1 < len(words) else ""
    if special := _SPECIAL.get(word):
        return special(words, before, after)
    return _guess_any(before, after)


def _guess_any(before: str, after: str) -> str | None:
    if before in _BEFORE_VERBS:
        return VERB
    if before in _BEFORE_NOUNS:
        return NOUN
    return VERB if before in ("", "and", "then") and after in _ARTICLES else None


def _guess_read(words: Sequence[str], before: str, after: str) -> str | None:
    if before in _HAVE or before in _BE or before in _SINGULAR:
        return PAST
    if before in _BEFORE_VERBS and before not in _PRONOUNS:
        return None
    return PAST if not _PAST_TIMES.isdisjoint(words) else None


def _guess_live(words: Sequence[str], before: str, after: str) -> str | None:
    if before in _BEFORE_VERBS or after in _PLACES:
        return VERB
    return None


def _guess_lives(words: Sequence[str], before: str, after: str) -> str | None:
    return VERB if before in _SINGULAR or before == "who" or after in _PLACES else None


def _guess_used(words: Sequence[str], before: str, after: str) -> str | None:
    """Tells "used to go" and "used to the noise" from "is used to go"."""
    if after != "to":
        return None
    if before not in _BE:
        return PAST
    place = words.index("to", words.index("used"))
    following = words[place + 1] if place + 1 < len(words) else ""
    return PAST if following in _ARTICLES or following == "it" else None


def _guess_wind(words: Sequence[str], before: str, after: str) -> str | None:
    return VERB if after in ("up", "down", "through") or before in ("to", "i", "you") else None


def _guess_wound(words: Sequence[str], before: str, after: str) -> str | None:
    return PAST if before in _PRONOUNS or after in ("up", "around", "down", "through") else None


def _guess_close(words: Sequence[str], before: str, after: str) -> str | None:
    if after in ("to", "by", "enough", "friend", "friends") and before not in ("to", "will"):
        return None
    return VERB if _guess_any(before, after) == VERB else None


def _guess_bass(words: Sequence[str], before: str, after: str) -> str | None:
    music = {"guitar", "player", "drum", "drums", "line", "clef", "voice", "music", "string"}
    return None if music.isdisjoint(words) else ADJECTIVE


def _guess_that(words: Sequence[str], before: str, after: str) -> str | None:
    return "DT" if after in ("", "is", "was", "one") else None


def _guess_verb_only(words: Sequence[str], before: str, after: str) -> str | None:
    """Guesses the few words that are rarely verbs: bow, dove, sow, tear, tears."""
    return VERB if before in _BEFORE_VERBS else None


_SPECIAL = {
    "read": _guess_read,
    "reread": _guess_read,
    "live": _guess_live,
    "lives": _guess_lives,
    "used": _guess_used,
    "wind": _guess_wind,
    "wound": _guess_wound,
    "close": _guess_close,
    "bass": _guess_bass,
    "that": _guess_that,
    "bow": _guess_verb_only,
    "dove": _guess_verb_only,
    "tear": _guess_verb_only,
    "tears": _guess_verb_only,
}


def is_metal(words: Sequence[str], place: int) -> bool:
    """Tells whether the word lead is the metal."""
    after = words[place + 1] if place + 1 < len(words) else ""
    before = words[place - 1] if place > 0 else ""
    return after in ("pipe", "pipes", "paint", "poisoning", "acid", "free", "shot") or before in (
        *("of", "contains", "molten"),
    )
