"""The chart agrees with itself and with the server.

`python -m tools.deploy.check` checks the chart with helm and Kubernetes' schemas.
"""

import json
import re
from collections.abc import Iterator
from typing import Any  # YAML

import jsonschema
import pytest
import yaml

from ouzel import __version__
from ouzel.api.http.key_checks import OPEN_PATHS
from ouzel.options.records import RECORDS, list_options
from tools.deploy.containerfile import PATH, ROOT, read_image

CHART = ROOT / "deploy" / "helm" / "ouzel"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
TEMPLATES = "\n".join(path.read_text() for path in sorted((CHART / "templates").iterdir()))
CASES = [
    CHART / "values-inferencepool.yaml",
    *sorted((ROOT / "tests" / "deploy" / "values").iterdir()),
]
OPTIONS = {option.name: option for record in RECORDS for option in list_options(record)}


def paths(values: dict[str, Any], before: str = "") -> Iterator[str]:
    """Yields the name of each value as in `--set`; a map that users fill in is one value."""
    for name, value in values.items():
        if isinstance(value, dict) and value and "properties" in _schema(before + name):
            yield from paths(value, f"{before}{name}.")
        else:
            yield before + name


def _schema(path: str) -> dict[str, Any]:
    schema: dict[str, Any] = SCHEMA
    for name in path.split("."):
        schema = schema["properties"][name]
    return schema


def _properties(schema: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, each in schema["properties"].items():
        if "properties" in each:
            yield from _properties(each, f"{before}{name}.")
        else:
            yield before + name


def used_in_templates() -> set[str]:
    aliases = dict(re.findall(r"\$(\w+) := \.Values\.([\w.]+)", TEMPLATES))
    found = set(re.findall(r"\.Values\.([\w.]+)", TEMPLATES))
    for alias, path in aliases.items():
        found |= {f"{path}.{rest}" for rest in re.findall(rf"\${alias}\.([\w.]+)", TEMPLATES)}
    return found


def test_values_have_types_and_all_types_have_values() -> None:
    jsonschema.validate(VALUES, SCHEMA)
    assert set(_properties(SCHEMA)) - {"global"} == set(paths(VALUES))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_values_files_are_of_the_schema(case: Any) -> None:
    jsonschema.validate(yaml.safe_load(case.read_text()), SCHEMA)


@pytest.mark.parametrize(
    "wrong",
    [
        {"modle": "org/model"},
        {"config": {"port": 80}},
        {"config": {"store_url": "postgresql://user:secret@host/name"}},
        {"replicas": "two"},
        {"gateway": {"inferencePool": {"endpointPicker": {"failureMode": "FailClosed"}}}},
        {"apiKeys": {"keys": ["two words"]}},
    ],
)
def test_wrong_values_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, SCHEMA)


def test_each_value_is_used_and_what_is_used_is_a_value() -> None:
    known = set(paths(VALUES))
    used = used_in_templates()

    unknown = {
        path
        for path in used
        if path not in known and not any(name.startswith(path + ".") for name in known)
    }
    assert {
        path for path in unknown if not any(path.startswith(name + ".") for name in known)
    } == set()
    assert {
        path
        for path in known
        if not any(path == each or path.startswith(each + ".") for each in used)
    } == set()


def test_each_value_has_a_row_in_the_readme() -> None:
    rows = re.findall(r"^\| (`.*?`) \|", (CHART / "README.md").read_text(), re.M)

    assert [name for row in rows for name in re.findall(r"`([\w.]+)`", row)] == list(paths(VALUES))


def test_options_of_the_chart_are_options_of_the_server_and_of_nobody_else() -> None:
    template = (CHART / "templates" / "configmap.yaml").read_text()
    given = set(re.findall(r'^ +"(\w+)" ', template, re.M)) | set(
        re.findall(r'set \$options "(\w+)"', template)
    )
    reserved = set(SCHEMA["properties"]["config"]["propertyNames"]["not"]["enum"])

    assert (
        {"host", "metrics_port", "drain_grace_s", "store", "api_key_file", "model"}
        <= given
        <= set(OPTIONS)
    )
    assert given <= reserved <= set(OPTIONS)
    assert {name for name, option in OPTIONS.items() if option.is_secret} <= reserved


def test_variables_of_the_chart_are_options() -> None:
    names = set(re.findall(r"name: (OUZEL_\w+)", TEMPLATES))
    assert names and names <= {option.variable for option in OPTIONS.values()}


def test_probes_need_no_key() -> None:
    probed = set(re.findall(r"httpGet: \{path: ([^,]+), port: metrics\}", TEMPLATES))
    assert probed == {"/health", "/v2/health/live"} and probed <= OPEN_PATHS


def test_it_is_the_chart_of_this_version_and_image() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    image = read_image(PATH.read_text())

    assert chart["appVersion"] == __version__
    assert set(re.findall(r"runAsUser: (\d+)", TEMPLATES)) == {str(image.user_id)}
    assert {path for path in image.volumes if f"mountPath: {path}" in TEMPLATES} == {
        "/var/cache/ouzel",
        "/var/lib/ouzel",
    }
