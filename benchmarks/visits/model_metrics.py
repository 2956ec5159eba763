"""Reads the metrics of a server about models that come and go."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelMetrics:
    num_open: int  # open requests
    num_loads: int
    load_s: float  # seconds of all loads together
    num_evictions: int


def read_model_metrics(text: str) -> dict[str, ModelMetrics]:
    """Returns the metrics of each model from the text of /metrics."""
    samples: dict[tuple[str, str], float] = {}
    names: list[str] = []
    for found in re.finditer(r'^ouzel_model_(\w+)\{model_name="([^"]+)"\} (\S+)$', text, re.M):
        samples[found[1], found[2]] = float(found[3])
        if found[1] == "loads_total":
            names.append(found[2])
    return {
        name: ModelMetrics(
            num_open=int(samples["open_requests", name]),
            num_loads=int(samples["loads_total", name]),
            load_s=samples["load_seconds_total", name],
            num_evictions=int(samples["evictions_total", name]),
        )
        for name in names
    }
