"""Parts of a search: filters, words, the fusion of two lists."""

from typing import Any  # JSON

import pytest

from ouzel.errors import InvalidRequest
from ouzel.hosted_tools.file_search.filters import read_filter
from ouzel.hosted_tools.file_search.fusion import fuse
from ouzel.hosted_tools.file_search.words import read_query, write_words

ADA: dict[str, str | float | bool] = {"author": "Ada", "year": 2024, "is_draft": True}


@pytest.mark.parametrize(
    ("type", "key", "value", "expected"),
    [
        ("eq", "author", "Ada", True),
        ("eq", "author", "ada", False),
        ("eq", "year", 2024.0, True),
        ("eq", "year", "2024", False),
        ("eq", "is_draft", 1, False),  # a boolean is no number
        ("eq", "missing", "x", False),
        ("ne", "missing", "x", True),
        ("ne", "author", "Ada", False),
        ("gt", "year", 2024, False),
        ("gte", "year", 2024, True),
        ("lt", "author", "Bob", True),
        ("lte", "author", 5, False),
        ("lt", "missing", 5, False),
        ("in", "year", [2023, 2024], True),
        ("in", "year", [], False),
        ("nin", "author", ["Bob"], True),
        ("nin", "author", ["Ada", "Bob"], False),
        ("nin", "missing", ["Ada"], True),
    ],
)
def test_a_comparison(type: str, key: str, value: object, expected: bool) -> None:
    assert read_filter({"type": type, "key": key, "value": value})(ADA) is expected


def test_filters_are_joined() -> None:
    ada = {"type": "eq", "key": "author", "value": "Ada"}
    old = {"type": "lt", "key": "year", "value": 2000}
    assert not read_filter({"type": "and", "filters": [ada, old]})(ADA)
    assert read_filter({"type": "or", "filters": [ada, old]})(ADA)
    nested = {"type": "and", "filters": [ada, {"type": "or", "filters": [old, ada]}]}
    assert read_filter(nested)(ADA)


def test_deep_and_wide_filters_are_refused() -> None:
    filter: dict[str, Any] = {"type": "eq", "key": "a", "value": 1}
    wide = {"type": "or", "filters": [filter] * 129}
    for _ in range(9):
        filter = {"type": "and", "filters": [filter]}
    with pytest.raises(InvalidRequest, match="nested <= 8 times"):
        read_filter(filter)
    with pytest.raises(InvalidRequest, match="<= 128 comparisons"):
        read_filter(wide)


def test_words_split_names_and_scripts_without_spaces() -> None:
    assert write_words("maxSize=4 (HTTPServer)").split() == [
        *("maxSize", "max", "Size", "4"),
        *("HTTPServer", "HTTP", "Server"),
    ]
    assert write_words("東京都です").split() == ["東京", "京都", "都で", "です"]
    assert write_words("Café ﬁne") == "Café fine"


def test_words_of_a_query_are_those_that_tell_something() -> None:
    assert read_query("How do I stop the server? The server!") == ["stop", "server"]
    assert read_query("to be or not to be") == ["not"]
    assert read_query("who are you") == ["who", "are", "you"]  # better than nothing
    assert read_query('" AND NEAR(*') == ["near"]
    assert read_query("***") == []
    assert read_query("İSTANBUL") == ["istanbul"]  # the lower case of this I has a mark of its own


def test_a_place_in_both_lists_comes_first() -> None:
    fused = fuse([(1.0, ["a", "b", "c"]), (1.0, ["b", "d"])])
    assert [place for place, _ in fused] == ["b", "a", "d", "c"]
    [(place, score)] = fuse([(1.0, ["a"]), (2.0, ["a"])])
    assert (place, score) == ("a", 1.0)
    assert fuse([(0.0, ["a"])]) == []
