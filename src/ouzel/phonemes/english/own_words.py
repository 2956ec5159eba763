"""This module has words of computing that misaki's lexicons lack, and letters of the alphabet."""

from ouzel.phonemes.english.british import make_british
from ouzel.phonemes.english.dialect import Dialect

LETTERS = {
    "a": "ˈA",
    "b": "bˈi",
    "c": "sˈi",
    "d": "dˈi",
    "e": "ˈi",
    "f": "ˈɛf",
    "g": "ʤˈi",
    "h": "ˈAʧ",
    "i": "ˈI",
    "j": "ʤˈA",
    "k": "kˈA",
    "l": "ˈɛl",
    "m": "ˈɛm",
    "n": "ˈɛn",
    "o": "ˈO",
    "p": "pˈi",
    "q": "kjˈu",
    "r": "ˈɑɹ",
    "s": "ˈɛs",
    "t": "tˈi",
    "u": "jˈu",
    "v": "vˈi",
    "w": "dˈʌbᵊlju",
    "x": "ˈɛks",
    "y": "wˈI",
    "z": "zˈi",
}
_WORDS = {
    "ascii": "ˈæski",
    "async": "ˈAsɪŋk",
    "chatbot": "ʧˈætbˌɑt",
    "emoji": "imˈOʤi",
    "gguf": "ʤˈi ɡˈʌf",
    "github": "ɡˈɪthˌʌb",
    "json": "ʤˈAsᵊn",
    "kokoro": "kˈOkəɹO",
    "kubernetes": "kubəɹnˈɛtis",
    "linux": "lˈɪnəks",
    "nginx": "ˈɛnʤɪn ˈɛks",
    "numpy": "nˈʌmpˌI",
    "ouzel": "ˈuzᵊl",
    "postgres": "pˈOstɡɹɛs",
    "postgresql": "pˈOstɡɹɛs kjˌuˈɛl",
    "qwen": "kwˈɛn",
    "sqlite": "ˈɛs kjˈu lˈIt",
    "sudo": "sˈudu",
    "unicode": "jˈunɪkˌOd",
    "wifi": "wˈIfˌI",
    "yaml": "jˈæmᵊl",
}


def find_own_word(word: str, dialect: Dialect) -> str | None:
    found = _WORDS.get(word.lower())
    return make_british(found) if found and dialect is Dialect.BRITISH else found


def spell(word: str, dialect: Dialect) -> str:
    """Returns the names of the letters. The last one has the primary stress."""
    names = [LETTERS[char] for char in word.lower() if char in LETTERS]
    if dialect is Dialect.BRITISH:
        names = ["zˈɛd" if name == "zˈi" else make_british(name) for name in names]
    weak = [name.replace("ˈ", "ˌ") for name in names[:-1]]
    return "".join([*weak, *names[-1:]])
