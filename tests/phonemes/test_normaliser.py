"""Numbers, dates, amounts, abbreviations, addresses and signs are read as words."""

import pytest

from ouzel.phonemes.english.dialect import Dialect
from ouzel.phonemes.english.normaliser import normalise
from ouzel.phonemes.english.number_words import read_cardinal, read_ordinal, read_year

AMERICAN = {
    # numbers
    "I have 0 of 1,234,567.": "I have zero of one million two hundred thirty four thousand five "
    "hundred sixty seven.",
    "3.14 or -5": "three point one four or minus five",
    "1st, 2nd, 23rd, 30th": "first, second, twenty third, thirtieth",
    "007 agents": "zero zero seven agents",
    "1/2, 3/4, 2 1/2 and 24/7": "one half, three quarters, two and a half and twenty four seven",
    "10–20 or 3-5": "ten to twenty or three to five",
    "version 2.10.3": "version two point ten point three",
    "GPT-4 and H2O": "GPT four and H two O",
    "#1 of 3x3, 5x faster": "number one of three by three, five times faster",
    "1" * 20: " ".join(["one"] * 20),
    # years and dates
    "in 1492, 1905, 2007 and 2026": "in fourteen ninety two, nineteen oh five, two thousand seven "
    "and twenty twenty six",
    "1500 people": "fifteen hundred people",
    "1234 people": "one thousand two hundred thirty four people",
    "the 1990s and the '80s": "the nineteen nineties and the eighties",
    "on 2026-11-30": "on November thirtieth, twenty twenty six",
    "3/4/2025": "March fourth, twenty twenty five",
    "25/12/2025": "December twenty fifth, twenty twenty five",
    "Nov. 3, 2024 or 3rd of May": "November third, twenty twenty four or May third",
    "2026-11-30T14:05:09Z": "November thirtieth, twenty twenty six fourteen oh five and nine "
    "seconds UTC",
    # times
    "at 14:30, 7:00 and 9:05 pm": "at fourteen thirty, seven o'clock and nine oh five P M",
    "from 8 a.m. to 5 p.m.": "from eight A M to five P M.",
    # money and measures
    "$5, $1, $1,234.56 and $0.99": "five dollars, one dollar, one thousand two hundred thirty four "
    "dollars and fifty six cents and ninety nine cents",
    "£5.01, 20€ and US$3.5 million": "five pounds and one penny, twenty euros and three point five "
    "million US dollars",
    "$20k and ¥100": "twenty thousand dollars and one hundred yen",
    "2.5% of 100%": "two point five percent of one hundred percent",
    "1 km, 5km, 3.5 kg, 60 km/h": "one kilometer, five kilometers, three point five kilograms, "
    "sixty kilometers per hour",
    "20 °C, 16GB, 3 m² and 10 ms": "twenty degrees Celsius, sixteen gigabytes, three square meters "
    "and ten milliseconds",
    # abbreviations
    "Mr. and Mrs. Hall met Dr. Who": "Mister and Missus Hall met Doctor Who",
    "St. John lives at 5 Main St. now": "Saint John lives at five Main Street now",
    "e.g. this, i.e. that, etc.": "for example this, that is that, et cetera.",
    "cats vs. dogs, No. 5, pp. 3-5": "cats versus dogs, number five, pages three to five",
    "the U.S. is": "the US is",
    "J. Smith w/ a Ph.D.": "J Smith with a PHD",
    "Henry VIII, Chapter IV, WWII": "Henry the eighth, Chapter four, World War two",
    # addresses and signs
    "see https://www.example.com/a_b?x=1.": "see example dot com slash a underscore b question "
    "mark x equals one.",
    "mail john.doe@example.com": "mail john dot doe at example dot com",
    "R&D, C++, C#, 50+": "R and D, C plus plus, C sharp, fifty plus",
    "and/or, yes/no": "and or, yes slash no",
    "wait - no... really??": "wait—no… really?",
    "x < 5, ~10, #tag": "x less than five, about ten, hashtag tag",
    "f() = α": "f equals alpha",
    "Москва и 東京": "Moskva i Chinese",
}


@pytest.mark.parametrize("text", AMERICAN)
def test_american_english(text: str) -> None:
    words = normalise(text, Dialect.AMERICAN)
    for mark in ",.?":
        words = words.replace(f" {mark}", mark)
    assert words == AMERICAN[text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3/4/2025", "the third of April, twenty twenty five"),
        ("2026-11-30", "the thirtieth of November, twenty twenty six"),
        ("101 km", "one hundred and one kilometres"),
        ("1,001", "one thousand and one"),
    ],
)
def test_british_english(text: str, expected: str) -> None:
    assert normalise(text, Dialect.BRITISH) == expected


def test_words_of_single_numbers() -> None:
    assert read_cardinal("1000000001") == "one billion one"
    assert read_cardinal("13", Dialect.BRITISH) == "thirteen"
    assert [read_ordinal(number) for number in ("5", "8", "12", "20", "100")] == [
        *("fifth", "eighth", "twelfth", "twentieth", "one hundredth"),
    ]
    assert read_year("2000") == "two thousand"
    assert read_year("1900") == "nineteen hundred"
