"""Dashboard, alerts and autoscaling ask for metrics that there are."""

import json
import re
from pathlib import Path

import pytest
import yaml

from ouzel.observability import EngineReading, HttpResponses, Metrics, exposition
from tools.deploy import check, dashboard
from tools.deploy.containerfile import ROOT

DEPLOY = ROOT / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
FILES = [
    DEPLOY / "grafana" / "ouzel.json",
    ALERTS,
    DEPLOY / "prometheus" / "alerts_test.yaml",
    DEPLOY / "helm" / "ouzel" / "templates" / "autoscaling.yaml",
    ROOT / "docs" / "how-to" / "scaling.md",
]


def known_series() -> set[str]:
    page = exposition(
        [
            (
                Metrics("demo"),
                [EngineReading(num_restarts=0, step_age_s=0, block_size=32, num_blocks=1)],
            )
        ]
    )
    page += HttpResponses().text()
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.M))
    histograms = {name for name, kind in types.items() if kind == "histogram"}
    return set(types) | {
        name + suffix for name in histograms for suffix in ("_bucket", "_count", "_sum")
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_metrics_are_there(path: Path) -> None:
    asked = set(re.findall(r"\b(?:ouzel_|vllm:)[a-z_]+[a-z]\b", path.read_text()))
    assert asked and asked <= known_series()


def test_the_dashboard_is_that_of_its_table() -> None:
    assert dashboard.PATH.read_text() == dashboard.text()


def test_the_dashboards_queries_are_of_what_is_chosen() -> None:
    queries = [
        target["expr"]
        for panel in dashboard.dashboard()["panels"]
        for target in panel.get("targets", ())
    ]
    assert queries
    for query in queries:
        assert query.count("ouzel_") == query.count(dashboard.SELECTOR) + query.count(
            dashboard.HTTP_ERRORS
        )
    assert {each["name"] for each in dashboard.dashboard()["templating"]["list"]} >= {
        "model",
        "engine",
    }


def test_panels_do_not_cover_each_other() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in json.loads(dashboard.PATH.read_text())["panels"]:
        place = panel["gridPos"]
        columns, rows = (
            range(place["x"], place["x"] + place["w"]),
            range(place["y"], place["y"] + place["h"]),
        )
        own = {(x, y) for x in columns for y in rows}
        assert not own & cells and columns.stop <= dashboard.WIDTH
        cells |= own


def test_each_alert_is_tested_and_says_what_to_do() -> None:
    names = [
        rule["alert"]
        for group in yaml.safe_load(ALERTS.read_text())["groups"]
        for rule in group["rules"]
    ]
    tested = (DEPLOY / "prometheus" / "alerts_test.yaml").read_text()
    documented = (ROOT / "docs" / "how-to" / "scaling.md").read_text()

    assert names == re.findall(r"^\| `(Ouzel\w+)` \|", documented, re.M)
    assert all(tested.count(name) == 2 for name in names)


def test_the_chart_has_the_same_files() -> None:
    files = DEPLOY / "helm" / "ouzel" / "files"
    assert (files / "dashboard.json").resolve() == dashboard.PATH
    assert (files / "alerts.yaml").resolve() == ALERTS


@pytest.mark.release(
    "deploy/ by the tools of those for whom it is made: helm, Compose, promtool, schemas"
)
def test_the_tools_of_others_have_no_complaint(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main() == 0, capsys.readouterr().out
