"""The command espeak-ng has phonemes of other languages, and of words without an entry."""

import shutil
import threading
from pathlib import Path

import pytest

from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.english_phonemizer import EnglishPhonemizer
from ouzel.phonemes.english.espeak_words import EspeakEnglish, convert
from ouzel.phonemes.english.lexicon import Lexicon
from ouzel.phonemes.errors import PronunciationFailed
from ouzel.phonemes.espeak_command import EspeakCommand, find_espeak
from ouzel.phonemes.espeak_phonemizer import EspeakPhonemizer
from tests.phonemes.espeak_program import write_espeak, write_program


def make_command(folder: Path, answers: dict[str, str]) -> EspeakCommand:
    return EspeakCommand(str(write_espeak(folder, answers)), "fr-fr")


def test_clauses_are_pronounced_and_marks_put_back(tmp_path: Path) -> None:
    command = make_command(
        tmp_path, {"Bonjour": "bɔ̃ʒˈuʁ", "le football": "lə (^e^n)fˈʊtbɔːl(^f^r)"}
    )
    phonemes = EspeakPhonemizer(command).to_phonemes("Bonjour, « le football » !")
    assert phonemes == "bɔ̃ʒˈuʁ, “lə fˈʊtbɔːl”!"


def test_pairs_become_single_characters(tmp_path: Path) -> None:
    command = make_command(tmp_path, {"x": "a^ɪa^ʊd^zd^ʒe^ɪo^ʊə^ʊs^st^st^ʃɔ^ɪ"})
    assert EspeakPhonemizer(command).to_phonemes("x") == "IWʣʤAOQSʦʧY"


def test_a_line_that_espeak_divides_is_asked_alone(tmp_path: Path) -> None:
    command = make_command(tmp_path, {"a": "a", "b": "b\nc", "d": "d"})
    assert command.pronounce(["a", "b", "d"]) == ["a", "b c", "d"]


def test_a_text_is_no_argument(tmp_path: Path) -> None:
    command = make_command(tmp_path, {"-v en $(id)": "ok"})
    assert command.pronounce(["-v en $(id)"]) == ["ok"]


def test_many_lines_go_to_several_processes(tmp_path: Path) -> None:
    lines = [f"{number} {'x' * 90}" for number in range(200)]
    command = make_command(tmp_path, {line: line[:3] for line in lines})
    assert command.pronounce(lines) == [line[:3].strip() for line in lines]


def test_a_command_that_fails_is_reported(tmp_path: Path) -> None:
    command = EspeakCommand(str(write_program(tmp_path, "#!/bin/sh\nexit 3\n")), "fr-fr")
    with pytest.raises(PronunciationFailed, match="espeak-ng has no voice fr-fr, or ended with 3"):
        command.pronounce(["a"])


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    path = write_program(tmp_path, "#!/bin/sh\nexec sleep 1000\n")
    command = EspeakCommand(str(path), "fr-fr", time_limit_s=0.2)
    with pytest.raises(PronunciationFailed, match=r"did not pronounce the text within 0\.2 s"):
        command.pronounce(["a"])


@pytest.mark.parametrize(
    ("dialect", "phonemes", "expected"),
    [
        (Dialect.AMERICAN, "kjˈuːbɛktə^l", "kjˈubɛktᵊl"),
        (Dialect.AMERICAN, "wˈɔːɾɚ bˈɜːd hˈo^ʊm", "wˈɔTəɹ bˈɜɹd hˈOm"),
        (Dialect.BRITISH, "bˈɜːd hˈə^ʊm ðˈe^ə", "bˈɜːd hˈQm ðˈɛː"),
        (Dialect.AMERICAN, "ˈɛnd^ʒɪn t^ʃˈe^ɪn", "ˈɛnʤɪn ʧˈAn"),
        (Dialect.AMERICAN, "bˈʌʔn\N{COMBINING VERTICAL LINE BELOW}", "bˈʌtᵊn"),
    ],
)
def test_english_phonemes_become_those_of_kokoro(
    dialect: Dialect, phonemes: str, expected: str
) -> None:
    assert convert(phonemes, dialect) == expected


def test_unknown_english_words_are_asked_once(tmp_path: Path) -> None:
    command = make_command(tmp_path, {"kubectl": "kjˈuːbɛktə^l", "gnarfle": "nˈɑːɹfə^l"})
    phonemizer = EnglishPhonemizer(
        Dialect.AMERICAN,
        Lexicon({"run": "ɹˈʌn"}, {}),
        EspeakEnglish(command, Dialect.AMERICAN),
    )
    assert phonemizer.to_phonemes("Run kubectl, gnarfle kubectl!") == (
        "ɹˈʌn kjˈubɛktᵊl, nˈɑɹfᵊl kjˈubɛktᵊl!"
    )
    Path(command.path).unlink()
    assert phonemizer.to_phonemes("kubectl") == "kjˈubɛktᵊl"


def test_rules_pronounce_english_words_where_espeak_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    espeak = EspeakEnglish(EspeakCommand(str(tmp_path / "missing"), "en-us"), Dialect.AMERICAN)
    phonemizer = EnglishPhonemizer(Dialect.AMERICAN, Lexicon({}, {}), espeak)
    assert phonemizer.to_phonemes("make") == "mˈAk"
    assert "words are pronounced by rules: espeak-ng could not be started" in caplog.text


def test_a_word_is_asked_again_after_a_failure(tmp_path: Path) -> None:
    command = EspeakCommand(str(tmp_path / "espeak-ng"), "en-us")
    espeak = EspeakEnglish(command, Dialect.AMERICAN)
    phonemizer = EnglishPhonemizer(Dialect.AMERICAN, Lexicon({}, {}), espeak)
    assert phonemizer.to_phonemes("make") == "mˈAk"  # the command is missing: rules answer
    write_espeak(tmp_path, {"make": "mˈuː"})
    assert phonemizer.to_phonemes("make") == "mˈu"


def test_threads_share_a_phonemizer(tmp_path: Path) -> None:
    words = ["bat", "make", "stone"]
    phonemizer = EnglishPhonemizer(Dialect.AMERICAN, Lexicon({}, {}))
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda word=word: found.append(phonemizer.to_phonemes(word)))
        for word in words * 5
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(["bˈæt", "mˈAk", "stˈOn"] * 5)


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="the command espeak-ng is missing")
def test_the_real_command() -> None:
    command = find_espeak("es")
    assert command is not None
    assert EspeakPhonemizer(command).to_phonemes("Hola, amigo.") == "ˈola, amˈiɣo."
    assert command.pronounce(["uno dos", "12,5", "tres"])[2] == "tɾˈes"
    english = find_espeak("en-us")
    assert english is not None
    assert EspeakEnglish(english, Dialect.AMERICAN).pronounce(["kubectl"]) == ["kjˈubɛktᵊl"]
