"""Names the languages of speech by their codes and by their English names."""

from collections.abc import Mapping

from ouzel.errors import InvalidRequest

# the languages of Whisper, by the codes of its tokens
LANGUAGES: Mapping[str, str] = {
    "af": "afrikaans",
    "am": "amharic",
    "ar": "arabic",
    "as": "assamese",
    "az": "azerbaijani",
    "ba": "bashkir",
    "be": "belarusian",
    "bg": "bulgarian",
    "bn": "bengali",
    "bo": "tibetan",
    "br": "breton",
    "bs": "bosnian",
    "ca": "catalan",
    "cs": "czech",
    "cy": "welsh",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "et": "estonian",
    "eu": "basque",
    "fa": "persian",
    "fi": "finnish",
    "fo": "faroese",
    "fr": "french",
    "gl": "galician",
    "gu": "gujarati",
    "ha": "hausa",
    "haw": "hawaiian",
    "he": "hebrew",
    "hi": "hindi",
    "hr": "croatian",
    "ht": "haitian creole",
    "hu": "hungarian",
    "hy": "armenian",
    "id": "indonesian",
    "is": "icelandic",
    "it": "italian",
    "ja": "japanese",
    "jw": "javanese",
    "ka": "georgian",
    "kk": "kazakh",
    "km": "khmer",
    "kn": "kannada",
    "ko": "korean",
    "la": "latin",
    "lb": "luxembourgish",
    "ln": "lingala",
    "lo": "lao",
    "lt": "lithuanian",
    "lv": "latvian",
    "mg": "malagasy",
    "mi": "maori",
    "mk": "macedonian",
    "ml": "malayalam",
    "mn": "mongolian",
    "mr": "marathi",
    "ms": "malay",
    "mt": "maltese",
    "my": "myanmar",
    "ne": "nepali",
    "nl": "dutch",
    "nn": "nynorsk",
    "no": "norwegian",
    "oc": "occitan",
    "pa": "punjabi",
    "pl": "polish",
    "ps": "pashto",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sa": "sanskrit",
    "sd": "sindhi",
    "si": "sinhala",
    "sk": "slovak",
    "sl": "slovenian",
    "sn": "shona",
    "so": "somali",
    "sq": "albanian",
    "sr": "serbian",
    "su": "sundanese",
    "sv": "swedish",
    "sw": "swahili",
    "ta": "tamil",
    "te": "telugu",
    "tg": "tajik",
    "th": "thai",
    "tk": "turkmen",
    "tl": "tagalog",
    "tr": "turkish",
    "tt": "tatar",
    "uk": "ukrainian",
    "ur": "urdu",
    "uz": "uzbek",
    "vi": "vietnamese",
    "yi": "yiddish",
    "yo": "yoruba",
    "yue": "cantonese",
    "zh": "chinese",
}
# further names and codes of these languages
_ALIASES: Mapping[str, str] = {
    "burmese": "my",
    "castilian": "es",
    "farsi": "fa",
    "flemish": "nl",
    "haitian": "ht",
    "jv": "jw",
    "letzeburgesch": "lb",
    "mandarin": "zh",
    "moldavian": "ro",
    "moldovan": "ro",
    "nb": "no",
    "panjabi": "pa",
    "pushto": "ps",
    "sinhalese": "si",
    "valencian": "ca",
}
_CODES: Mapping[str, str] = {
    **{name: code for code, name in LANGUAGES.items()},
    **_ALIASES,
}


def read_language(text: str, *, field: str = "language") -> str:
    """Returns the code of a language that is given as a code (`en`, `en-GB`) or a name (English).

    Raises InvalidRequest.
    """
    name = text.strip().lower()
    code = name.replace("_", "-").partition("-")[0]
    for candidate in (name, code):
        found = _CODES.get(candidate, candidate)
        if found in LANGUAGES:
            return found
    raise InvalidRequest(
        "must be the code or the English name of a language, such as en or english, "
        f"given {text[:100]!r}",
        field=field,
    )


def name_language(code: str) -> str:
    """Returns the English name in lower case; a code without a name is its own name."""
    return LANGUAGES.get(code, code)
