"""Names the special tokens of Whisper: their order is fixed, and the number of tokens tells which
languages there are.

The tokens of texts come first, then the end, the start, the languages, translate, transcribe,
startoflm, startofprev, nospeech, notimestamps, and 1501 timestamps from 0 to 30 s.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ouzel.errors import ModelLoadError

NUM_TIMESTAMPS = 1501
ENGLISH_ONLY = 51864  # tokens of models that know English only
_LANGUAGES = """
en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no
th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw
gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl
mg as tt haw ln ha ba jw su yue
"""
_OTHERS = ("translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps")
_CODES = _LANGUAGES.split()
_OLD_NAMES = {"nocaptions": "nospeech"}


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The ids of the special tokens; languages by code."""

    end: int
    start: int
    languages: Mapping[str, int]
    others: Mapping[str, int]  # ids by name, without the marks around it
    is_multilingual: bool

    @property
    def first_timestamp(self) -> int:
        return self.others["notimestamps"] + 1

    def list_names(self) -> dict[str, int]:
        """Returns all ids by the token's spelling, without timestamps."""
        names = {
            "endoftext": self.end,
            "startoftranscript": self.start,
            **self.languages,
            **self.others,
        }
        return {f"<|{name}|>": token_id for name, token_id in names.items()}


def count_special_tokens(vocab_size: int, source: object) -> SpecialTokens:
    """Finds the tokens by the number of all tokens.

    Raises ModelLoadError, which names the source, if no Whisper has this number.
    """
    is_multilingual = vocab_size > ENGLISH_ONLY
    # Models for English have the tokens of 99 languages, but one token of texts less.
    num_languages = vocab_size - ENGLISH_ONLY + 98 if is_multilingual else len(_CODES) - 1
    if not ENGLISH_ONLY <= vocab_size <= ENGLISH_ONLY + 2:
        raise ModelLoadError(
            f"{source} must have {ENGLISH_ONLY} to {ENGLISH_ONLY + 2} tokens, found {vocab_size}"
        )
    end = vocab_size - NUM_TIMESTAMPS - len(_OTHERS) - num_languages - 2
    languages = {code: end + 2 + place for place, code in enumerate(_CODES[:num_languages])}
    first = end + 2 + num_languages
    others = {name: first + place for place, name in enumerate(_OTHERS)}
    return SpecialTokens(end, end + 1, languages, others, is_multilingual)


def find_special_tokens(ids: Mapping[str, int], vocab_size: int, source: object) -> SpecialTokens:
    """Finds the tokens by their spelling in a tokenizer.

    Raises ModelLoadError, which names the source, if some are missing.
    """
    plain = {
        _OLD_NAMES.get(name, name): token_id
        for name, token_id in (
            (text[2:-2], token_id) for text, token_id in ids.items() if text.startswith("<|")
        )
    }
    required = ("endoftext", "startoftranscript", *_OTHERS)
    if missing := [name for name in required if name not in plain]:
        raise ModelLoadError(f"{source} has no token <|{'|>, <|'.join(missing)}|>")
    start = plain["startoftranscript"]
    languages = {
        name: token_id for name, token_id in plain.items() if start < token_id < plain["translate"]
    }
    others = {name: plain[name] for name in _OTHERS}
    is_multilingual = vocab_size != ENGLISH_ONLY
    return SpecialTokens(plain["endoftext"], start, languages, others, is_multilingual)
