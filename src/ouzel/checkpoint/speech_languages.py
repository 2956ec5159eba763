"""Names the languages of speech models by the codes of their tokens, such as `en` or `haw`.

Whisper's vocabulary has these codes (openai-whisper, `tokenizer.py`). They are ISO 639 codes,
except `jw` for Javanese.
"""

from collections.abc import Mapping
from typing import Final

_NAMES = """
    en English, zh Chinese, de German, es Spanish, ru Russian, ko Korean, fr French, ja Japanese,
    pt Portuguese, tr Turkish, pl Polish, ca Catalan, nl Dutch, ar Arabic, sv Swedish, it Italian,
    id Indonesian, hi Hindi, fi Finnish, vi Vietnamese, he Hebrew, uk Ukrainian, el Greek, ms Malay,
    cs Czech, ro Romanian, da Danish, hu Hungarian, ta Tamil, no Norwegian, th Thai, ur Urdu,
    hr Croatian, bg Bulgarian, lt Lithuanian, la Latin, mi Maori, ml Malayalam, cy Welsh, sk Slovak,
    te Telugu, fa Persian, lv Latvian, bn Bengali, sr Serbian, az Azerbaijani, sl Slovenian,
    kn Kannada, et Estonian, mk Macedonian, br Breton, eu Basque, is Icelandic, hy Armenian,
    ne Nepali, mn Mongolian, bs Bosnian, kk Kazakh, sq Albanian, sw Swahili, gl Galician,
    mr Marathi, pa Punjabi, si Sinhala, km Khmer, sn Shona, yo Yoruba, so Somali, af Afrikaans,
    oc Occitan, ka Georgian, be Belarusian, tg Tajik, sd Sindhi, gu Gujarati, am Amharic,
    yi Yiddish, lo Lao, uz Uzbek, fo Faroese, ht Haitian Creole, ps Pashto, tk Turkmen, nn Nynorsk,
    mt Maltese, sa Sanskrit, lb Luxembourgish, my Myanmar, bo Tibetan, tl Tagalog, mg Malagasy,
    as Assamese, tt Tatar, haw Hawaiian, ln Lingala, ha Hausa, ba Bashkir, jw Javanese,
    su Sundanese, yue Cantonese
"""


def _read_names() -> dict[str, str]:
    pairs = (each.strip().partition(" ") for each in _NAMES.split(","))
    return {code: name for code, _, name in pairs}


LANGUAGE_NAMES: Final[Mapping[str, str]] = _read_names()  # English names by code
_OTHER_NAMES = {
    "burmese": "my",
    "valencian": "ca",
    "flemish": "nl",
    "haitian": "ht",
    "letzeburgesch": "lb",
    "pushto": "ps",
    "panjabi": "pa",
    "moldavian": "ro",
    "moldovan": "ro",
    "sinhalese": "si",
    "castilian": "es",
    "mandarin": "zh",
    "farsi": "fa",
}
# other codes of the same languages: jw is Javanese only in Whisper, and iw, in and ji are old codes
_OTHER_CODES = {"jv": "jw", "iw": "he", "in": "id", "ji": "yi", "nb": "no", "fil": "tl"}
_CODES_BY_NAME = {name.lower(): code for code, name in LANGUAGE_NAMES.items()} | _OTHER_NAMES


def find_language(text: str) -> str | None:
    """Returns the code of a language by its code, its locale such as `en-US`, or its English name.

    Case does not matter. Returns None for a text that names no known language.
    """
    name = text.strip().lower()
    code = name.replace("_", "-").partition("-")[0]
    code = _OTHER_CODES.get(code, code)
    return code if code in LANGUAGE_NAMES else _CODES_BY_NAME.get(name)
