"""English texts become phonemes by the lexicons, by endings, by context, and by rules."""

import json

import pytest

from ouzel.phonemes.alphabet import VOCABULARY
from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.english_phonemizer import EnglishPhonemizer
from ouzel.phonemes.english.lexicon import Lexicon, find_lexicons, read_lexicon
from tests.phonemes.lexicons import needs_lexicons

# American English, with the lexicons and without espeak-ng
SENTENCES = {
    "Hello, world!": "həlˈO, wˈɜɹld!",
    "The quick brown fox (a dog) ran...": "ðə kwˈɪk bɹˈWn fˈɑks (ɐ dˈɔɡ) ɹˈæn…",
    # a, an, the, to and I before sounds
    "an apple, a pear, the apple, the pear": "ɐn ˈæpᵊl, ɐ pˈɛɹ, ði ˈæpᵊl, ðə pˈɛɹ",
    "an hour, a European": "ɐn ˈWəɹ, ɐ jˌʊɹəpˈiən",
    "to eat, to go, go to.": "tʊ ˈit, tə ɡˌO, ɡˌO tu.",
    "Vitamin A": "vˈITəmən ˈA",
    # words with several pronunciations
    "I have read it. I will read it.": "ˌI hæv ɹˈɛd ɪt. ˌI wɪl ɹˈid ɪt.",
    "He used to use it.": "hi jˈust tə jˈuz ɪt.",
    "it is used to make wine": "ɪt ɪz jˈuzd tə mˌAk wˈIn",
    "people live here": "pˈipᵊl lˈɪv hˈɪɹ",
    "live music": "lˈIv mjˈuzɪk",
    "the lead pipe": "ðə lˈɛd pˈIp",
    "Record the record.": "ɹəkˈɔɹd ðə ɹˈɛkəɹd.",
    "close to me, to close it": "klˈOs tə mˌi, tə klˈOz ɪt",
    # capitals
    "NASA, IBM, US, GPUs and APIs": "nˈæsə, ˌIbˌiˈɛm, jˌuˈɛs, ʤˌipˌijˈuz ænd ˌApˌiˈIz",
    "do NOT stop": "dˈu nˌɑt stˈɑp",
    "OpenAI": "ˈOpᵊn ˈAˌI",
    # endings, apostrophes, hyphens and compounds
    "unfriended": "ˌʌnfɹˈɛndᵻd",
    "OpenAI's": "ˈOpᵊn ˈAˌIz",
    "the server's": "ðə sˈɜɹvəɹz",
    "she can't, they'd've": "ʃi kˈænt, ðAdəv",
    "a well-known café": "ɐ wˈɛl nˈOn kæfˈA",
    "Kubernetes": "kubəɹnˈɛtis",
    # a text that normalisation changes
    "$5 at 7:00": "fˈIv dˈɑləɹz æt sˈɛvən əklˈɑk",
}


@pytest.fixture(scope="module")
def american() -> EnglishPhonemizer:
    return EnglishPhonemizer(Dialect.AMERICAN, read_lexicon(find_lexicons(Dialect.AMERICAN)))


@pytest.fixture(scope="module")
def british() -> EnglishPhonemizer:
    return EnglishPhonemizer(Dialect.BRITISH, read_lexicon(find_lexicons(Dialect.BRITISH)))


@needs_lexicons
@pytest.mark.parametrize("text", SENTENCES)
def test_american_english(american: EnglishPhonemizer, text: str) -> None:
    assert american.to_phonemes(text) == SENTENCES[text]


@needs_lexicons
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dance, the car park.", "ðə dˈɑːns, ðə kˈɑː pˈɑːk."),
        ("I go to a lot of hotels.", "ˌI ɡˌQ tʊ ɐ lˈɒt ɒv hˌQtˈɛlz."),
        ("XYZ", "ˌɛkswˌIzˈɛd"),
    ],
)
def test_british_english(british: EnglishPhonemizer, text: str, expected: str) -> None:
    assert british.to_phonemes(text) == expected


@needs_lexicons
def test_every_entry_of_the_lexicons_has_known_phonemes() -> None:
    """An entry with an unknown character would lose a sound silently."""
    for dialect in Dialect:
        files = find_lexicons(dialect)
        assert files is not None
        for file in files:
            entries = json.loads(file.read_text()).values()
            forms = [entry.values() if isinstance(entry, dict) else [entry] for entry in entries]
            sounds = {char for form in forms for phonemes in form for char in phonemes or ""}
            assert sounds - VOCABULARY <= {"ɾ", "ʔ"}  # become T and t


class TestRules:
    """Words are pronounced without lexicons and without espeak-ng."""

    @pytest.mark.parametrize(
        ("word", "american", "british"),
        [
            ("bat", "bˈæt", "bˈat"),
            ("make", "mˈAk", "mˈAk"),
            ("stone", "stˈOn", "stˈQn"),
            ("shining", "ʃˈɪnɪŋ", "ʃˈɪnɪŋ"),
            ("nation", "nˈAʃən", "nˈAʃən"),
            ("phone", "fˈOn", "fˈQn"),
            ("knight", "nˈIt", "nˈIt"),
            ("car", "kˈɑɹ", "kˈɑː"),
            ("queue", "kwˈu", "kwˈuː"),
            ("tree", "tɹˈi", "tɹˈiː"),
            ("church", "ʧˈɜɹʧ", "ʧˈɜːʧ"),
            ("zxq", "zˌiˌɛkskjˈu", "zˌɛdˌɛkskjˈuː"),
        ],
    )
    def test_letters_become_sounds(self, word: str, american: str, british: str) -> None:
        for dialect, expected in ((Dialect.AMERICAN, american), (Dialect.BRITISH, british)):
            phonemizer = EnglishPhonemizer(dialect, Lexicon({}, {}))
            assert phonemizer.to_phonemes(word) == expected

    def test_no_word_is_dropped(self) -> None:
        text = "zq b'x q-z Ωμ Владимир 東京 שלום é ß ħ ŋ x̂ ꙮ 𝒳 ªº"
        phonemes = EnglishPhonemizer(Dialect.AMERICAN, Lexicon({}, {})).to_phonemes(text)
        assert len(phonemes.split()) >= len(text.split())


class TestLexicon:
    def test_gold_words_go_before_silver_words(self) -> None:
        lexicon = Lexicon(
            {"a": "ˈA", "b": {"DEFAULT": "bˈi", "VERB": None}}, {"a": "ə", "c": "sˈi"}
        )
        assert lexicon.find("a") == {"DEFAULT": "ˈA"}
        assert lexicon.find("b") == {"DEFAULT": "bˈi", "VERB": None}
        assert lexicon.find_any_case("C") == {"DEFAULT": "sˈi"}
        assert lexicon.find("d") is None
