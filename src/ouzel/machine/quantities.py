"""Writes numbers for people: memory in GiB, counts in billions."""


def format_size(num_bytes: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if num_bytes >= size:
            return f"{_round(num_bytes / size)} {unit}"
    return f"{num_bytes} bytes"


def format_count(number: int) -> str:
    for unit, size in (("B", 10**9), ("M", 10**6), ("K", 10**3)):
        if number >= size:
            return f"{_round(number / size)} {unit}"
    return str(number)


def _round(value: float) -> str:
    """Rounds to three digits; to a whole number where `g` would write an exponent."""
    return f"{value:.3g}" if value < 999.5 else f"{value:.0f}"
