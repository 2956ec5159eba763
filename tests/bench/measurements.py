"""Makes measurements for tests from the times of chunks."""

import itertools

from ouzel.bench.measurement import Measurement


def measurement(
    start_s: float,
    chunk_times_s: tuple[float, ...],
    *,
    output_len: int,
    input_len: int = 10,
    error: str = "",
) -> Measurement:
    """Returns a measurement; chunk times count from its start, the last chunk ends the answer."""
    pairs = itertools.pairwise(chunk_times_s)
    return Measurement(
        start_s=start_s,
        ttft_s=chunk_times_s[0] if chunk_times_s else 0.0,
        itls_s=tuple(later - earlier for earlier, later in pairs),
        e2el_s=chunk_times_s[-1] if chunk_times_s else 0.0,
        input_len=input_len,
        cached_len=0,
        output_len=output_len,
        max_tokens=output_len,
        is_counted=True,
        text="",
        answer="",
        error=error,
    )
