"""Writes `deploy/grafana/ouzel.json`, the dashboard, from a table of its panels.

python -m tools.deploy.dashboard
"""

import json
import re
import sys
from dataclasses import dataclass
from typing import Any  # JSON

from tools.deploy.containerfile import ROOT

PATH = ROOT / "deploy" / "grafana" / "ouzel.json"
SELECTOR = '{namespace=~"$namespace",model_name=~"$model",engine=~"$engine"}'
# Responses of HTTP belong to a server, not to a model.
HTTP_ERRORS = 'ouzel_http_responses_total{namespace=~"$namespace",code=~"4..|5.."}'
SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH = 24  # Grafana's columns


@dataclass(frozen=True, slots=True)
class Panel:
    """A figure or chart: queries with their legends. `SELECTOR` follows each metric's name."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"  # or stat
    width: int = 8
    description: str = ""


def _share(part: str, whole: str) -> str:
    return f"sum(rate({part}[$__rate_interval])) / sum(rate({whole}[$__rate_interval]))"


def _per_second(metric: str, by: str = "") -> str:
    return f"sum{f' by ({by})' if by else ''} (rate({metric}[$__rate_interval]))"


def _quantiles(metric: str) -> tuple[tuple[str, str], ...]:
    summed = f"sum by (le) (rate({metric}_bucket[$__rate_interval]))"
    return tuple(
        (f"histogram_quantile({q}, {summed})", f"p{q * 100:.0f}") for q in (0.5, 0.95, 0.99)
    )


def _mean(metric: str) -> str:
    return _share(f"{metric}_sum", f"{metric}_count")


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Now",
        (
            Panel("Running", (("sum(ouzel_num_requests_running)", ""),), kind="stat", width=4),
            Panel("Waiting", (("sum(ouzel_num_requests_waiting)", ""),), kind="stat", width=4),
            Panel(
                "First token, p95",
                (_quantiles("ouzel_time_to_first_token_seconds")[1],),
                "s",
                "stat",
                4,
            ),
            Panel(
                "Tokens generated",
                ((_per_second("ouzel_generation_tokens_total"), ""),),
                "cps",
                "stat",
                4,
            ),
            Panel(
                "Prefix hits",
                (
                    (
                        _share("ouzel_prefix_cache_hits_total", "ouzel_prefix_cache_queries_total"),
                        "",
                    ),
                ),
                "percentunit",
                "stat",
                4,
                "Share of prompt tokens that were in the KV cache.",
            ),
            Panel(
                "Engines started again",
                (("sum(ouzel_engine_restarts_total)", ""),),
                kind="stat",
                width=4,
            ),
        ),
    ),
    (
        "Traffic",
        (
            Panel(
                "Choices ended",
                (
                    (
                        _per_second("ouzel_request_success_total", "finished_reason"),
                        "{{finished_reason}}",
                    ),
                ),
                "reqps",
            ),
            Panel(
                "Requests running and waiting",
                (
                    ("sum by (engine) (ouzel_num_requests_running)", "running {{engine}}"),
                    ("sum by (engine) (ouzel_num_requests_waiting)", "waiting {{engine}}"),
                ),
            ),
            Panel(
                "Refused, and left by their clients",
                (
                    (_per_second("ouzel_requests_refused_total"), "refused (429)"),
                    (_per_second("ouzel_num_aborts_total"), "aborted"),
                ),
                "reqps",
            ),
            Panel(
                "Errors of HTTP",
                ((_per_second(HTTP_ERRORS, "path, code"), "{{code}} {{path}}"),),
                "reqps",
                width=24,
                description="Responses with a status of 400 and above, by path, of all models.",
            ),
            Panel(
                "Tokens",
                (
                    (_per_second("ouzel_prompt_tokens_total"), "prompt"),
                    (_per_second("ouzel_prompt_tokens_cached_total"), "prompt, cached"),
                    (_per_second("ouzel_generation_tokens_total"), "generated"),
                ),
                "cps",
                width=12,
            ),
            Panel(
                "Tokens of a request, mean",
                (
                    (_mean("ouzel_request_prompt_tokens"), "prompt"),
                    (_mean("ouzel_request_generation_tokens"), "generated"),
                ),
                width=12,
            ),
        ),
    ),
    (
        "Latency",
        (
            Panel("Time to first token", _quantiles("ouzel_time_to_first_token_seconds"), "s"),
            Panel("Between tokens", _quantiles("ouzel_inter_token_latency_seconds"), "s"),
            Panel("Whole request", _quantiles("ouzel_e2e_request_latency_seconds"), "s"),
            Panel(
                "Where the time goes, mean",
                (
                    (_mean("ouzel_request_queue_time_seconds"), "queue"),
                    (_mean("ouzel_request_prefill_time_seconds"), "prefill"),
                    (_mean("ouzel_request_decode_time_seconds"), "decode"),
                ),
                "s",
                width=12,
            ),
            Panel(
                "Waiting for the engine",
                _quantiles("ouzel_request_queue_time_seconds"),
                "s",
                width=12,
            ),
        ),
    ),
    (
        "Engines",
        (
            Panel(
                "KV cache and recurrent states in use",
                (
                    ("max by (engine) (ouzel_kv_cache_usage_perc)", "KV cache {{engine}}"),
                    ("max by (engine) (ouzel_state_slots_usage_perc)", "states {{engine}}"),
                ),
                "percentunit",
            ),
            Panel(
                "Prefix hits",
                (
                    (
                        _share("ouzel_prefix_cache_hits_total", "ouzel_prefix_cache_queries_total"),
                        "in memory",
                    ),
                    (
                        _per_second("ouzel_prefix_store_loaded_total"),
                        "from the directory, records a second",
                    ),
                ),
            ),
            Panel(
                "Preemptions",
                ((_per_second("ouzel_num_preemptions_total", "engine"), "{{engine}}"),),
                "ops",
            ),
            Panel(
                "Age of the step",
                (("max by (engine) (ouzel_engine_step_age_seconds)", "{{engine}}"),),
                "s",
            ),
            Panel(
                "Guessed tokens that came true",
                (
                    (
                        _share(
                            "ouzel_spec_decode_num_accepted_tokens_total",
                            "ouzel_spec_decode_num_draft_tokens_total",
                        ),
                        "",
                    ),
                ),
                "percentunit",
            ),
            Panel(
                "Pictures",
                (
                    (_per_second("ouzel_images_encoded_total"), "encoded"),
                    (_per_second("ouzel_image_hits_total"), "kept"),
                    (_per_second("ouzel_image_encoding_seconds_total"), "share of the time"),
                ),
                "cps",
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        _append(
            panels,
            {"type": "row", "title": title, "collapsed": False, "panels": []},
            (0, y, WIDTH, 1),
        )
        x, y = 0, y + 1
        height = 4 if row[0].kind == "stat" else 8
        for panel in row:
            if x + panel.width > WIDTH:
                x, y = 0, y + height
            _append(panels, _panel(panel), (x, y, panel.width, height))
            x += panel.width
        y += height
    return {
        "uid": "ouzel",
        "title": "Ouzel",
        "tags": ["llm"],
        "schemaVersion": 39,
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,  # one cursor for all charts
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": panels,
    }


def _append(
    panels: list[dict[str, Any]], panel: dict[str, Any], place: tuple[int, int, int, int]
) -> None:
    """Appends a panel; the place is x, y, width and height."""
    panels.append(
        {"id": len(panels) + 1, "gridPos": dict(zip("xywh", place, strict=True)), **panel}
    )


def _panel(panel: Panel) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": SOURCE,
            "expr": _add_selector(query),
            "legendFormat": legend,
        }
        for number, (query, legend) in enumerate(panel.queries)
    ]
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def _add_selector(query: str) -> str:
    """Selects by namespace, model and engine, unless the query has labels of its own."""
    return re.sub(r"ouzel_\w+\b(?!{)", lambda name: name[0] + SELECTOR, query)


def _variables() -> list[dict[str, Any]]:
    source = {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    names = {"namespace": "namespace", "model": "model_name", "engine": "engine"}
    return [source] + [
        {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": SOURCE,
            "query": f"label_values(ouzel_num_requests_running, {label})",
            "refresh": 2,  # when the time range changes
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
            "sort": 1,
        }
        for name, label in names.items()
    ]


def text() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    PATH.write_text(text())
    sys.stdout.write(f"{PATH}\n")
