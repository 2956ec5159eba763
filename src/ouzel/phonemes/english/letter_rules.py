"""Pronounces any word by rules for its letters, where no lexicon and no command knows the word.

The rules have the form of Elovitz and others, "Automatic translation of English text to phonetics
by means of letter-to-sound rules" (Naval Research Laboratory, 1976): letters in a context of
letters become phonemes. The table is our own. A second step sets the stress.
"""

import re

from ouzel.phonemes.english.british import make_british
from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.own_words import spell

_V = "[aeiouy]"

# For each first letter: rules in the order of their trial. `^` and `$` are the ends of the word.
_RULES: dict[str, list[tuple[str, str]]] = {
    "a": [
        (r"augh", "ɔ"), (r"au|aw", "ɔ"), (r"air", "ɛɹ"), (r"ai|ay", "A"), (r"are$", "ɛɹ"),
        (r"arr(?=[aeiouy])", "æɹ"), (r"(?<=w)ar", "ɔɹ"), (r"ar(?=[aeiouy])", "ɛɹ"), (r"ar", "ɑɹ"),
        (r"all", "ɔl"), (r"alk", "ɔk"), (r"ation", "AʃəN"), (r"able$", "əbᵊl"), (r"age$", "ɪʤ"),
        (r"ange", "Anʤ"), (r"aste", "Ast"), (r"ah", "ɑ"), (r"(?<=[a-z])a$", "ə"),
        (r"^a(?=[^aeiou]{1}[aeiou].)", "ə"), (r"ae", "i"),
        (r"a(?=[bcdfgklmnpstvz]e(?:s|d|r|rs)?$)", "A"), (r"a(?=[bcdfgklmnpstvz](?:ing|y)$)", "A"),
        (r"a(?=ti|ci(?=[ao])|si(?=o))", "A"), (r"a(?=[bcdglmnptvz][iou])", "ɑ"), (r"a", "æ"),
    ],
    "b": [(r"bb", "b"), (r"(?<=m)b$", ""), (r"b", "b")],
    "c": [
        (r"cch(?=[aeiou])", "k"), (r"cc(?=[eiy])", "ks"), (r"cc", "k"), (r"ch(?=r|l)", "k"),
        (r"ch", "ʧ"), (r"ck", "k"), (r"cia(?=[ln])", "ʃə"), (r"cious", "ʃəs"),
        (r"c(?=[eiy])", "s"), (r"cq", "k"), (r"cz", "ʧ"), (r"c", "k"),
    ],
    "d": [(r"dge?(?=[eiy]|$)|dge", "ʤ"), (r"dd", "d"), (r"d", "d")],
    "e": [
        (r"eigh", "A"), (r"eau", "O"), (r"eer|ear", "ɪɹ"), (r"ee|ea", "i"), (r"eu|ew", "u"),
        (r"ei|ey(?=.)", "A"), (r"ey$", "i"), (r"ed$(?<=[td]ed)", "ᵻd"),
        (r"(?<=[aeiouy][^aeiou])ed$", "d"), (r"(?<=[pkfs])ed$", "t"),
        (r"(?<=.)es$(?<=[szxc]es)|(?<=.)es$(?<=[cs]hes)|(?<=g)es$", "ᵻz"),
        (r"(?<=[aeiouy][a-z])e(?=s$)|(?<=[aeiouy][a-z]{2})e(?=s$)", ""),
        (r"(?<=[aeiouy][a-z]l)e$", ""), (r"(?<=[aeiouy][a-z])e$", ""),
        (r"(?<=[aeiouy][a-z]{2})e$", ""), (r"(?<=[aeiouy][a-z]{3})e$", ""),
        (r"(?<=[bcdfgkpstz]l)e$", ""), (r"er(?=[aeiou])", "ɛɹ"), (r"er|e(?=r$)", "əɹ"),
        (r"(?<=^[a-z])e$|(?<=^[a-z]{2})e$", "i"), (r"e$", ""), (r"e(?=[bcdfgklmnpstvz]e$)", "i"),
        (r"e(?=[ao])", "i"), (r"(?<=^[rdp])e(?=[^aeiou][aeiou])", "i"), (r"en$", "ᵊn"),
        (r"el$", "ᵊl"), (r"e", "ɛ"),
    ],
    "f": [(r"ff?", "f")],
    "g": [
        (r"(?<=[aeiou])gh(?=t|$)", ""), (r"gh", "ɡ"), (r"^gn", "n"), (r"gn$", "n"), (r"gg", "ɡ"),
        (r"gue$", "ɡ"), (r"gu(?=[aei])", "ɡ"), (r"g(?=e|i[aeno]|y)", "ʤ"), (r"g", "ɡ"),
    ],
    "h": [(r"(?<=[aeiou])h(?![aeiouy])", ""), (r"h", "h")],
    "i": [
        (r"igh", "I"), (r"ique$", "ik"), (r"ier$", "iəɹ"), (r"ies$", "iz"), (r"ied$", "id"),
        (r"ie", "i"), (r"ing$", "ɪŋ"), (r"ire", "Iəɹ"), (r"ir(?=[aeiou])", "ɪɹ"), (r"ir", "ɜɹ"),
        (r"ind$", "Ind"), (r"ild$", "Ild"), (r"io(?=n)(?<=[st]io)", "ə"), (r"i(?=[ao])", "i"),
        (r"i$", "i"), (r"ize$|ise$", "Iz"), (r"ism$", "ɪzᵊm"), (r"ive$", "ɪv"), (r"ine$", "in"),
        (r"ite$", "It"), (r"i(?=[bcdfgklmnpstvz]e(?:s|d|r|rs)?$)", "I"), (r"^i(?=[^aeiou]$)", "ɪ"),
        (r"i", "ɪ"),
    ],
    "j": [(r"j", "ʤ")],
    "k": [(r"^kn", "n"), (r"kh", "k"), (r"kk?", "k")],
    "l": [(r"(?<=[bcdfgkpstz])le$", "ᵊl"), (r"(?<=[bcdfgkpstz])les$", "ᵊlz"), (r"ll?", "l")],
    "m": [(r"^mn", "n"), (r"mm?", "m")],
    "n": [
        (r"ng$", "ŋ"), (r"ng(?=s$|[bcdfhkmnpstvw])", "ŋ"), (r"n(?=[kgx]|c[aou])", "ŋ"),
        (r"nn?", "n"),
    ],
    "o": [
        (r"ough$", "O"), (r"ought", "ɔt"), (r"ould", "ʊd"), (r"oor|our|oar|ore", "ɔɹ"),
        (r"ook", "ʊk"), (r"oo", "u"), (r"ous$", "əs"), (r"ou", "W"), (r"ow(?=n|l|er|d)", "W"),
        (r"ow", "O"), (r"oy|oi", "Y"), (r"oa|oe", "O"), (r"(?<=w)or", "ɜɹ"),
        (r"or$(?<=[a-z]{3}or)", "əɹ"), (r"or", "ɔɹ"), (r"old", "Old"), (r"oll$", "Ol"),
        (r"ost$", "Ost"), (r"on$(?<=[aeiouy][a-z]on)", "ən"), (r"o$", "O"),
        (r"o(?=[bcdfgklmnpstvz]e(?:s|d|r|rs)?$)", "O"),
        (r"o(?=ti|si|ci|[bcdgklmnptvz][aiou])", "O"), (r"o", "ɑ"),
    ],
    "p": [(r"ph", "f"), (r"^p(?=[sn])|^pt(?=e)", ""), (r"pp?", "p")],
    "q": [(r"que$", "k"), (r"qu", "kw"), (r"q", "k")],
    "r": [(r"rh|rr?", "ɹ")],
    "s": [
        (r"sch", "sk"), (r"sh", "ʃ"), (r"ssion", "ʃən"), (r"(?<=[aeiou])sion", "ʒən"),
        (r"sion", "ʃən"), (r"sure$", "ʒəɹ"), (r"sc(?=[eiy])", "s"), (r"ss", "s"),
        (r"(?<=[aeiou])s(?=[aeiou])", "z"), (r"(?<=[bdglmnrvw])s$", "z"), (r"(?<=[aeio])s$", "z"),
        (r"(?<=e)s(?=e$)", "z"), (r"sm$", "zᵊm"), (r"s", "s"),
    ],
    "t": [
        (r"tch", "ʧ"), (r"tion", "ʃən"), (r"tia(?=l)", "ʃə"), (r"tious", "ʃəs"), (r"ture", "ʧəɹ"),
        (r"th", "θ"), (r"tt?", "t"),
    ],
    "u": [
        (r"ur(?=[aeiou])", "jʊɹ"), (r"ur", "ɜɹ"), (r"^u(?=n[^aeiou]|p|l|s[^aeiou]|g)", "ʌ"),
        (r"^u", "ju"), (r"ue$", "u"), (r"ui", "u"), (r"uy", "I"), (r"u$", "u"),
        (r"u(?=[bcdfgklmnpstvz]e(?:s|d|r|rs)?$)(?<=[bcfghkmpv]u)", "ju"),
        (r"u(?=[bcdfgklmnpstvz]e(?:s|d|r|rs)?$)", "u"), (r"u(?=[bcdfgklmnpstvz][aio])", "u"),
        (r"(?<=q)u", "w"), (r"u", "ʌ"),
    ],
    "v": [(r"vv?", "v")],
    "w": [(r"^wr", "ɹ"), (r"wh", "w"), (r"w(?=[aeiouy])", "w"), (r"w", "")],
    "x": [(r"^x", "z"), (r"x", "ks")],
    "y": [
        (r"^y(?=[aeiou])", "j"), (r"(?<=^[a-z])y$|(?<=^[a-z]{2})y$(?<![aeiou]y)", "I"),
        (r"y$", "i"), (r"y(?=[aeiou])", "j"), (r"y(?=[bcdfgklmnpstvz]e)", "I"), (r"y", "ɪ"),
    ],
    "z": [(r"zz?", "z")],
}  # fmt: skip
_COMPILED = {
    letter: [(re.compile(pattern), phonemes.replace("N", "n")) for pattern, phonemes in rules]
    for letter, rules in _RULES.items()
}
_SYLLABLE = re.compile("[AIOWYiuæɑɔəɛɜɪʊʌᵊᵻ]")
_STRESSABLE = re.compile("[AIOWYiuæɑɔɛɜɪʊʌ]")
_STRESS_BEFORE = re.compile(r"(?:ʃən|ʒən|ʃəs|ɪk|ɪks|ʃəl|iəs|iən|iə|əti|ɪti|əʤi|əɡɹəfi)$")
_MAX_SPELLED_CHARS = 6


def pronounce_by_letters(word: str, dialect: Dialect) -> str:
    """Returns the phonemes of a word of letters; other characters are skipped.

    A word without a vowel is spelled.
    """
    parts = re.split("[' -]", word.lower())
    if len(parts) > 1:
        found = [pronounce_by_letters(part, dialect) for part in parts if part]
        return (" " if "'" not in word else "").join(found)
    letters = "".join(char for char in parts[0] if "a" <= char <= "z")
    if not re.search(_V, letters):
        return " ".join(
            spell(letters[start : start + _MAX_SPELLED_CHARS], dialect)
            for start in range(0, len(letters), _MAX_SPELLED_CHARS)
        )
    phonemes = _set_stress(_apply_rules(letters))
    return make_british(phonemes) if dialect is Dialect.BRITISH else phonemes


def _apply_rules(word: str) -> str:
    phonemes = ""
    place = 0
    while place < len(word):
        for pattern, sounds in _COMPILED[word[place]]:
            if (found := pattern.match(word, place)) and found.end() > place:
                phonemes += sounds
                place = found.end()
                break
    return phonemes


def _set_stress(phonemes: str) -> str:
    """Puts the primary stress before the vowel of a syllable.

    Two syllables have it on the first, longer words on the third from the end, or on the syllable
    before an ending such as -tion. Misaki's alphabet has the mark directly before the vowel.
    """
    syllables = [found.start() for found in _SYLLABLE.finditer(phonemes)]
    vowels = [found.start() for found in _STRESSABLE.finditer(phonemes)]
    if not vowels:
        return phonemes
    ending = _STRESS_BEFORE.search(phonemes)
    if ending and (earlier := [vowel for vowel in vowels if vowel < ending.start()]):
        place = earlier[-1]
    else:
        wanted = syllables[max(0, len(syllables) - 3)]
        place = next((vowel for vowel in vowels if vowel >= wanted), vowels[0])
    return f"{phonemes[:place]}ˈ{phonemes[place:]}"
