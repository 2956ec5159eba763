"""Rules of robots.txt are read as RFC 9309 says, also rules that strangers write to do harm."""

import pytest

from ouzel.hosted_tools.web_search.robots import read_robots

SITE = "https://example.org"


def permits(text: str, path: str) -> bool:
    return read_robots(text.encode(), "Ouzel").permit(SITE + path)


@pytest.mark.parametrize(
    ("rules", "path", "is_permitted"),
    [
        ("", "/", True),
        ("Disallow:", "/", True),
        ("Disallow: /", "/x", False),
        ("Disallow: /private", "/private/a", False),
        ("Disallow: /private", "/public", True),
        ("Disallow: /*.pdf$", "/a/b.pdf", False),
        ("Disallow: /*.pdf$", "/a/b.pdf?x=1", True),
        ("Disallow: /*?", "/a?x=1", False),
        ("Disallow: /*?", "/a", True),
        ("Disallow: /a*b*c", "/a1b2c3", False),
        ("Disallow: /a*b*c", "/acb", True),
        ("Disallow: /a*a$", "/a", True),
        ("Disallow: /\nAllow: /docs", "/docs/x", True),
        ("Allow: /docs\nDisallow: /", "/docs/x", True),
        ("Allow: /docs\nDisallow: /", "/other", False),
        ("Disallow: /x\nAllow: /x", "/x", True),
        ("disallow : /x # a comment", "/x", False),
        ("Disallow: /m%C3%BCll", "/müll", False),
        ("Disallow: /müll", "/m%c3%bcll", False),
        ("Disallow: /%7Euser", "/~user", False),
        ("Disallow: /a%2Fb", "/a/b", True),
        ("nonsense\nDisallow: /x", "/x", False),
    ],
)
def test_the_longest_rule_that_matches_decides(rules: str, path: str, is_permitted: bool) -> None:
    assert permits(f"User-agent: *\n{rules}", path) == is_permitted


@pytest.mark.parametrize("agent", ["Ouzel", "ouzel", "OUZEL/2.0"])
def test_groups_that_name_the_agent_replace_the_common_ones(agent: str) -> None:
    text = (
        f"User-agent: *\nDisallow: /\n\nUser-agent: other\nUser-agent: {agent}\nDisallow: /a\n"
        f"User-agent: third\nDisallow: /b\nUser-agent: {agent}\nDisallow: /c"
    )
    assert [permits(text, path) for path in ("/", "/a", "/b", "/c")] == [True, False, True, False]


def test_an_empty_group_that_names_the_agent_permits_everything() -> None:
    assert permits("User-agent: *\nDisallow: /\n\nUser-agent: ouzel\nDisallow:", "/x")


def test_an_agent_with_a_longer_name_is_another_one() -> None:
    assert permits("User-agent: Ouzelbot\nDisallow: /", "/x")


def test_a_long_file_is_cut_between_its_lines() -> None:
    evil = f"User-agent: *\nDisallow: {'/*a' * 100_000}b$\n" + "Disallow: *a*a*b\n" * 50_000
    robots = read_robots(evil.encode(), "Ouzel")
    assert len(robots.rules) == 5000
    assert robots.permit(f"{SITE}/{'a' * 8000}")
    longer = "User-agent: *\n" + "Disallow: /a\n" * 39_383 + "Disallow: /bcd"
    assert len(longer) > 500 * 2**10
    assert read_robots(longer.encode(), "Ouzel").permit(f"{SITE}/b")


def test_bytes_that_are_no_text_are_no_rules() -> None:
    assert read_robots(b"\xff\xfe\x00" * 1000, "Ouzel").permit(f"{SITE}/x")


def test_an_agent_that_is_named_often_has_each_rule_once() -> None:
    # One rule for each pair of lines would fill gigabytes, from a file of half a megabyte.
    text = "User-agent: *\n" * 200 + "User-agent: Ouzel\n" * 200 + "Disallow: /x\n"
    assert len(read_robots(text.encode(), "Ouzel").rules) == 1
