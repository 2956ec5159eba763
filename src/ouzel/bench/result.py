"""Writes and reads the result of a run as JSON with the field names of `vllm bench serve`.

Fields that vLLM does not have are in the object `ouzel`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # JSON

import msgspec

from ouzel.bench.figures import PERCENTILES, Figures, Spread
from ouzel.bench.run import Run
from ouzel.client.base import UNREADABLE
from ouzel.errors import OuzelError

Result = Mapping[str, Any]
_UNLIMITED = float("inf")


class _Ours(msgspec.Struct):
    """Checks the fields of `ouzel` that the report reads."""

    server: dict[str, Any] | None = None
    machine: dict[str, Any] | None = None
    remarks: list[str] = []


class _Shape(msgspec.Struct):
    """Checks the fields that figures and charts need; only the throughput must be present."""

    request_throughput: float
    start_times: list[float] | None = None
    ttfts: list[float] | None = None
    itls: list[list[float]] | None = None
    output_lens: list[float] | None = None
    errors: list[str] | None = None
    ouzel: _Ours | None = None


class InvalidResult(OuzelError):
    """The file cannot be read or written, or has no result of a benchmark."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The fields of a saved result that are the same for all runs of a command."""

    backend: str
    model: str
    own_fields: Mapping[str, Any]  # the fields of `ouzel`


def build_result(run: Run, figures: Figures, circumstances: Circumstances) -> Result:
    rate = run.load.request_rate
    measurements = run.measurements
    return {
        "date": run.started_at.strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": circumstances.backend,
        "backend": circumstances.backend,
        "label": None,
        "model_id": circumstances.model,
        "tokenizer_id": circumstances.model,
        "num_prompts": run.num_prompts,
        "request_rate": "inf" if rate == _UNLIMITED else rate,
        "burstiness": run.load.burstiness,
        "max_concurrency": run.load.max_concurrency,
        **_totals(figures),
        **_times("ttft", figures.ttft),
        **_times("tpot", figures.tpot),
        **_times("itl", figures.itl),
        **_times("e2el", figures.e2el),
        "input_lens": [each.input_len for each in measurements],
        "output_lens": [each.output_len if each.is_complete else 0 for each in measurements],
        "ttfts": [each.ttft_s for each in measurements],
        "itls": [each.itls_s for each in measurements],
        "start_times": [each.start_s - run.start_s for each in measurements],
        "generated_texts": [each.text for each in measurements],
        "errors": [each.error for each in measurements],
        "ouzel": {**circumstances.own_fields, "is_stopped": run.is_stopped},
    }


def _totals(figures: Figures) -> dict[str, Any]:
    return {
        "duration": figures.duration_s,
        "completed": figures.num_completed,
        "failed": figures.num_failed,
        "total_input_tokens": figures.total_input,
        "total_output_tokens": figures.total_output,
        "request_throughput": figures.request_throughput,
        "request_goodput": figures.request_goodput,
        "output_throughput": figures.output_throughput,
        "total_token_throughput": figures.total_token_throughput,
        "max_output_tokens_per_s": figures.max_output_tokens_per_s,
        "max_concurrent_requests": figures.max_concurrent_requests,
    }


def _times(name: str, spread: Spread) -> dict[str, float]:
    values = {"mean": spread.mean, "median": spread.median, "std": spread.std}
    values |= {
        f"p{percent}": value for percent, value in zip(PERCENTILES, spread.percentiles, strict=True)
    }
    return {f"{statistic}_{name}_ms": value for statistic, value in values.items()}


def write_results(path: Path, results: Sequence[Result]) -> None:
    """Writes one result as an object, and the results of a sweep as a list.

    Raises InvalidResult.
    """
    content = results[0] if len(results) == 1 else results
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
    except OSError as error:
        raise InvalidResult(f"{path}: {error.strerror}") from error


def read_results(path: Path) -> list[Result]:
    """Reads a file with one result or a list of results. Raises InvalidResult."""
    try:
        content = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InvalidResult(f"{path}: {error.strerror}") from error
    except UNREADABLE as error:
        raise InvalidResult(f"{path}: is not JSON: {error}") from error
    results = content if isinstance(content, list) else [content]
    no_result = f"{path}: must be a result of ouzel bench or vllm bench serve"
    if not results:
        raise InvalidResult(no_result)
    try:
        msgspec.convert(results, list[_Shape])
    except msgspec.ValidationError as error:
        raise InvalidResult(f"{no_result}: {error}") from error
    return results
