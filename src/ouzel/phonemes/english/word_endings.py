"""This module adds endings to words: plurals, past tenses, participles and contractions.

The sounds follow the textbook rules of English: an s or d is voiced as the sound before it, and
a vowel parts it from a similar sound.
"""

from collections.abc import Callable, Iterator

from ouzel.phonemes.english.dialect import Dialect

_VOICELESS = frozenset("pktfθ")
_HISSING = frozenset("szʃʒʧʤ")
_FLAP_BEFORE = frozenset("AIOWYiuæɑəɛɪɹʊʌ")
_CONTRACTIONS = {"'ll": "ᵊl", "'d": "d", "'ve": "v", "'re": "əɹ", "'m": "m"}
_SUFFIXES = {
    "ly": "li",
    "ness": "nəs",
    "less": "ləs",
    "ful": "fᵊl",
    "ment": "mənt",
    "ship": "ʃɪp",
    "er": "əɹ",
    "ers": "əɹz",
    "able": "əbᵊl",
    "ish": "ɪʃ",
    "ism": "ɪzᵊm",
    "ist": "ɪst",
    "ize": "Iz",
    "y": "i",
}
_PREFIXES = {
    "un": "ʌn",
    "re": "ɹi",
    "non": "nɑn",
    "pre": "pɹi",
    "sub": "sʌb",
    "over": "Ovəɹ",
    "under": "ʌndəɹ",
    "multi": "mʌlti",
    "micro": "mIkɹO",
    "auto": "ɔtO",
    "anti": "ænti",
    "inter": "ɪntəɹ",
    "hyper": "hIpəɹ",
    "super": "supəɹ",
    "mis": "mɪs",
    "dis": "dɪs",
    "co": "kO",
    "de": "di",
}
_MIN_STEM = 3

Find = Callable[[str], str | None]


def pronounce_ending(word: str, find: Find, dialect: Dialect) -> str | None:
    """Returns the phonemes of a word whose stem `find` knows."""
    for stem, attach in _analyse(word):
        if stem and (phonemes := find(stem)):
            return attach(phonemes, dialect)
    return None


def add_s(phonemes: str, dialect: Dialect) -> str:
    """Adds the ending of a plural or a possessive."""
    last = phonemes[-1]
    if last in _HISSING:
        return f"{phonemes}{_weak_vowel(dialect)}z"
    return phonemes + ("s" if last in _VOICELESS else "z")


def add_ed(phonemes: str, dialect: Dialect) -> str:
    """Adds the ending of a past tense; an American t between vowels becomes a flap."""
    last = phonemes[-1]
    if last in "td":
        return f"{_flap(phonemes, dialect)}{_weak_vowel(dialect)}d"
    return phonemes + ("t" if last in _VOICELESS or last in "sʃʧ" else "d")


def add_ing(phonemes: str, dialect: Dialect) -> str:
    return f"{_flap(phonemes, dialect)}ɪŋ"


def add_contraction(phonemes: str, ending: str, dialect: Dialect) -> str | None:
    """Adds 's, 'll, 'd, 've, 're or 'm. Returns None for another ending."""
    if ending == "'s":
        return add_s(phonemes, dialect)
    if ending == "'d" and phonemes[-1] in "td":
        return f"{phonemes}əd"
    sounds = _CONTRACTIONS.get(ending)
    if sounds is None:
        return None
    if sounds == "v" and phonemes[-1] not in _FLAP_BEFORE:
        sounds = "əv"
    if sounds == "əɹ" and dialect is Dialect.BRITISH:
        sounds = "ə"
    return phonemes + sounds


def _weak_vowel(dialect: Dialect) -> str:
    return "ɪ" if dialect is Dialect.BRITISH else "ᵻ"


def _flap(phonemes: str, dialect: Dialect) -> str:
    flaps = phonemes[-1:] == "t" and phonemes[-2:-1] in _FLAP_BEFORE
    if dialect is Dialect.AMERICAN and flaps:
        return f"{phonemes[:-1]}ɾ"
    return phonemes


Attach = Callable[[str, Dialect], str]


def _analyse(word: str) -> Iterator[tuple[str, Attach]]:
    """Yields possible stems of a word in small letters, each with its ending."""
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        yield from ((stem, add_s) for stem in _stems_of_s(word))
    if word.endswith("ed") and len(word) > _MIN_STEM + 1:
        yield from ((stem, add_ed) for stem in _stems(word[:-2]))
    if word.endswith("ing") and len(word) > _MIN_STEM + 2:
        yield from ((stem, add_ing) for stem in _stems(word[:-3]))
    yield from _analyse_suffixes(word)
    for prefix, sounds in _PREFIXES.items():
        if word.startswith(prefix) and len(word) - len(prefix) > _MIN_STEM:
            yield word[len(prefix) :], _prefix(sounds)


def _analyse_suffixes(word: str) -> Iterator[tuple[str, Attach]]:
    for suffix, sounds in _SUFFIXES.items():
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM:
            for stem in _stems(word[: -len(suffix)]):
                yield stem, _suffix(sounds)


def _stems_of_s(word: str) -> Iterator[str]:
    yield word[:-1]
    if word.endswith("ies"):
        yield f"{word[:-3]}y"
    if word.endswith("es"):
        yield word[:-2]


def _stems(rest: str) -> Iterator[str]:
    """Yields spellings of a stem: walk, make (mak), stop (stopp), try (tri)."""
    yield rest
    yield f"{rest}e"
    if len(rest) > 2 and rest[-1] == rest[-2]:
        yield rest[:-1]
    if rest.endswith("i"):
        yield f"{rest[:-1]}y"


def _suffix(sounds: str) -> Attach:
    def attach(phonemes: str, dialect: Dialect) -> str:
        ending = sounds
        if dialect is Dialect.BRITISH and ending.startswith("əɹ"):
            ending = ending.replace("ɹ", "")
        return (_flap(phonemes, dialect) if ending[0] in "əɪi" else phonemes) + ending

    return attach


def _prefix(sounds: str) -> Attach:
    def attach(phonemes: str, dialect: Dialect) -> str:
        if dialect is Dialect.BRITISH:
            from_american = {"O": "Q", "ɑ": "ɒ", "æ": "a", "ɔ": "ɔː"}
            beginning = "".join(from_american.get(sound, sound) for sound in sounds)
            return f"ˌ{beginning.replace('əɹ', 'ə')}{phonemes}"
        return f"ˌ{sounds}{phonemes}"

    return attach
