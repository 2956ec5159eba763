"""A language has a phonemizer, or an error names the possible languages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ouzel.phonemes import phonemizer as phonemizer_module
from ouzel.phonemes.errors import EspeakMissing, SpeechExtraMissing
from ouzel.phonemes.phonemizer import LANGUAGES, LanguageNotSpoken, make_phonemizer
from tests.phonemes.espeak_program import write_espeak
from tests.phonemes.lexicons import needs_lexicons


@pytest.fixture(autouse=True)
def fresh_phonemizers() -> Iterator[None]:
    """No test gets the phonemizer of another test, which may have found another command."""
    make_phonemizer.cache_clear()
    yield
    make_phonemizer.cache_clear()


@pytest.mark.parametrize("language", ["ja", "zh", "EN-US", ""])
def test_other_languages_are_refused(language: str) -> None:
    with pytest.raises(LanguageNotSpoken) as caught:
        make_phonemizer(language)
    assert str(caught.value) == (
        "language must have one of the languages en-us, en-gb, es, fr-fr, hi, it, pt-br, "
        f"given {language}"
    )
    assert caught.value.status == 400
    assert str(caught.value.at("voice")).startswith("voice must have")


@pytest.mark.parametrize("language", ["es", "fr-fr", "hi", "it", "pt-br"])
def test_a_language_needs_espeak(
    language: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EspeakMissing, match=f"espeak-ng on its PATH .+, given {language}$"):
        make_phonemizer(language)
    write_espeak(tmp_path, {"Hola": "ˈola"})
    assert make_phonemizer(language).to_phonemes("Hola.") == "ˈola."


@pytest.mark.parametrize("language", ["en-us", "en-gb"])
def test_english_needs_lexicons_or_espeak(
    language: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(phonemizer_module, "find_lexicons", lambda dialect: None)
    with pytest.raises(SpeechExtraMissing, match=r"extra speech .+espeak-ng, given en-.."):
        make_phonemizer(language)
    write_espeak(tmp_path, {"Hello": "həlˈo^ʊ"})
    make_phonemizer.cache_clear()
    assert make_phonemizer(language).to_phonemes("Hello.") == "həlˈO."


@needs_lexicons
def test_english_speaks_by_the_lexicons(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert make_phonemizer("en-us").to_phonemes("Hello, blorptastic.") == ("həlˈO, blɔɹptˈæstɪk.")
    assert make_phonemizer("en-us") is make_phonemizer("en-us")
    assert set(LANGUAGES) >= {"en-us", "en-gb"}
