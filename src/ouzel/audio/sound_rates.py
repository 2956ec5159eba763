"""Checks the rate that a sound file declares."""

from typing import Final

from ouzel.audio.refusals import Refusal, RefusalKind

# A lower rate would turn few bytes into hours of samples; a higher rate needs a long filter.
MIN_RATE: Final = 1000
MAX_RATE: Final = 1_000_000


def check_rate(rate: int) -> None:
    """Raises Refusal for a rate in Hz that no sound file has."""
    if not MIN_RATE <= rate <= MAX_RATE:
        raise Refusal(
            RefusalKind.UNKNOWN,
            f"must have {MIN_RATE} to {MAX_RATE} samples a second, given {rate}",
        )
