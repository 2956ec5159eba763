"""Writes the metrics of models that come and go: loads, evictions, states and memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ouzel.observability.series import Kind, family_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReading:
    """The facts of one model at the time of a scrape."""

    name: str
    state: str
    is_loaded: bool
    num_open: int
    num_loads: int
    loading_s: float
    num_failures: int  # failed loads since the last load that succeeded
    num_evictions: int
    num_bytes: int | None


_FAMILIES: tuple[tuple[str, Kind, str, Callable[[ModelReading], float | None]], ...] = (
    (
        "ouzel_model_loaded",
        "gauge",
        "1 while the model is in memory.",
        lambda model: int(model.is_loaded),
    ),
    ("ouzel_model_open_requests", "gauge", "Open requests.", lambda model: model.num_open),
    ("ouzel_model_loads", "counter", "Loads of the model.", lambda model: model.num_loads),
    (
        "ouzel_model_load_seconds",
        "counter",
        "Seconds of all loads of the model.",
        lambda model: model.loading_s,
    ),
    (
        "ouzel_model_failed_loads",
        "gauge",
        "Failed loads of the model since its last load.",
        lambda model: model.num_failures,
    ),
    (
        "ouzel_model_evictions",
        "counter",
        "Unloads that made room for another model.",
        lambda model: model.num_evictions,
    ),
    (
        "ouzel_model_memory_bytes",
        "gauge",
        "Memory of the model with its caches, if it was measured.",
        lambda model: model.num_bytes,
    ),
)


def write_model_metrics(models: Sequence[ModelReading], num_waiting: int) -> str:
    """Returns the families of all models; `num_waiting` requests wait for a model."""
    texts = [
        family_text(
            "ouzel_requests_waiting_for_models",
            "gauge",
            "Requests that wait for a model to be loaded.",
            [("", {}, num_waiting)],
        ),
        family_text(
            "ouzel_model_state",
            "gauge",
            "1 for the state of the model.",
            [("", {"model_name": model.name, "state": model.state}, 1) for model in models],
        ),
    ]
    for name, kind, documentation, read in _FAMILIES:
        suffix = "_total" if kind == "counter" else ""
        samples = [
            (suffix, {"model_name": model.name}, value)
            for model in models
            if (value := read(model)) is not None
        ]
        if samples:
            texts.append(family_text(name, kind, documentation, samples))
    texts.append(
        family_text(
            "ovms_graph_loaded",  # the name in OpenVINO Model Server
            "gauge",
            "1 while the model is in memory.",
            [("", {"name": model.name}, int(model.is_loaded)) for model in models],
        )
    )
    return "".join(texts)
