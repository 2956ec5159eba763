"""Turns the voice of a request into voices of the model: names, OpenAI's names, and mixes."""

import re
from collections.abc import Sequence
from math import isfinite

from ouzel.errors import InvalidRequest

# OpenAI's voices, and the voices of Kokoro-82M v1.0 that stand for them. The makers of Kokoro named
# the first six after OpenAI's. The others are chosen by their grades in the model's VOICES.md.
_OPENAI_VOICES = {
    "alloy": "af_alloy",
    "echo": "am_echo",
    "fable": "bm_fable",
    "onyx": "am_onyx",
    "nova": "af_nova",
    "ash": "am_michael",
    "ballad": "bm_george",
    "coral": "af_bella",
    "sage": "af_sarah",
    "shimmer": "af_aoede",
    "verse": "am_fenrir",
    "marin": "af_heart",
    "cedar": "am_puck",
}
# The first letter of a voice names its language.
LANGUAGES = {
    "a": "en-us",
    "b": "en-gb",
    "e": "es",
    "f": "fr-fr",
    "h": "hi",
    "i": "it",
    "j": "ja",
    "p": "pt-br",
    "z": "zh",
}
_SHORT_LANGUAGES = {"en": "en-us", "fr": "fr-fr", "pt": "pt-br"}
_DEFAULT_LANGUAGE = "en-us"
# for a term without spaces at its ends; no two neighbours take the same characters
_TERM = re.compile(r"([^()+\s]+)\s*(?:\(\s*([\d.]+)\s*\))?")
_MAX_TERMS = 16
_MAX_WEIGHT = 1000.0
_SHOWN_CHARS = 100

Mix = tuple[tuple[int, float], ...]  # index of a voice and its weight; the weights sum to 1


def find_mix(voice: str, names: Sequence[str]) -> Mix:
    """Returns the voices of a name or a mix. Raises InvalidRequest with `param` voice."""
    weights: dict[int, float] = {}
    terms = voice.split("+", _MAX_TERMS)
    if len(terms) > _MAX_TERMS:
        raise InvalidRequest(f"must mix at most {_MAX_TERMS} voices", field="voice")
    for term in terms:
        match = _TERM.fullmatch(term.strip())
        if match is None:
            raise InvalidRequest(
                f'must be a voice, or a mix such as "af_bella(2)+af_sky(1)", given {_show(voice)}',
                field="voice",
            )
        index = _find_voice(match[1], names)
        weights[index] = weights.get(index, 0.0) + _read_weight(match[2], voice)
    total = sum(weights.values())
    return tuple((index, weight / total) for index, weight in weights.items())


def _find_voice(name: str, names: Sequence[str]) -> int:
    for known in (name, _OPENAI_VOICES.get(name, ""), name.lower()):
        if known in names:
            return names.index(known)
    others = [each for each, own in _OPENAI_VOICES.items() if own in names and each not in names]
    raise InvalidRequest(
        f"must be one of {', '.join([*names, *others])}, or a mix of them, given {_show(name)}",
        field="voice",
    )


def _read_weight(written: str | None, voice: str) -> float:
    try:
        weight = 1.0 if written is None else float(written)
    except ValueError:
        weight = 0.0
    if not (isfinite(weight) and 0 < weight <= _MAX_WEIGHT):
        raise InvalidRequest(
            f"must have weights above 0, at most {_MAX_WEIGHT:g}, given {_show(voice)}",
            field="voice",
        )
    return weight


def find_language(language: str | None, mix: Mix, names: Sequence[str]) -> str:
    """Returns the code of a language: the request's, or the language of the loudest voice.

    Requests may name it as Kokoro-FastAPI does, by the first letter of voices.
    """
    if language is not None:
        code = language.strip()[:_SHOWN_CHARS].lower().replace("_", "-")
        return LANGUAGES.get(code) or _SHORT_LANGUAGES.get(code) or code
    index, _ = max(mix, key=lambda each: each[1])
    return LANGUAGES.get(names[index][:1], _DEFAULT_LANGUAGE)


def _show(value: str) -> str:
    return repr(value[:_SHOWN_CHARS])
