"""Suggests known names for a mistyped one."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(names: Iterable[str], known: Iterable[str], *, likeness: float = 0.7) -> str:
    """Returns `; did you mean A, B?`, or an empty text if no known name is similar.

    `likeness` is difflib's ratio, 1 for equal names; the dashes before a flag do not count.
    """
    flags = {flag.lstrip("-"): flag for flag in known}
    matches = [
        match
        for name in names
        for match in get_close_matches(name.lstrip("-"), flags, n=1, cutoff=likeness)
    ]
    return (
        f"; did you mean {', '.join(flags[match] for match in dict.fromkeys(matches))}?"
        if matches
        else ""
    )
