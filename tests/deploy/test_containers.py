"""Containerfile and compose file agree with the server.

`python -m tools.deploy.image` builds and starts the image.
"""

import re

import pytest
import yaml

from ouzel.options.command_line import read_command_line
from ouzel.options.records import RECORDS, list_options
from tools.deploy import image as image_command
from tools.deploy.containerfile import PATH, ROOT, read_image

IMAGE = read_image(PATH.read_text())
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose" / "compose.yaml").read_text())
RETRIEVAL = ROOT / "deploy" / "compose" / "retrieval"
VARIABLES = {option.variable for record in RECORDS for option in list_options(record)}


def test_the_image_sets_options_that_there_are() -> None:
    names = {name for name in IMAGE.environment if name.startswith("OUZEL_")}
    assert {"OUZEL_HOST", "OUZEL_METRICS_PORT"} <= names <= VARIABLES


def test_what_the_image_writes_is_in_its_volumes() -> None:
    written = [
        IMAGE.environment[name] for name in ("HOME", "HF_HOME", "OUZEL_CACHE_DIR", "OUZEL_DATA_DIR")
    ]
    assert all(path.startswith(IMAGE.volumes) for path in written)


def test_it_does_not_run_as_root() -> None:
    assert min(IMAGE.user_id, IMAGE.group_id) >= 10000


def test_what_it_is_built_from_is_there() -> None:
    allowed = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    assert "uv.lock" in allowed and all((ROOT / path).exists() for path in allowed)


def test_servers_of_the_compose_file_have_options_that_there_are() -> None:
    servers = [service for name, service in COMPOSE["services"].items() if name.startswith("ouzel")]
    assert len(servers) == 2
    for server in servers:
        environment = server["environment"]
        assert {name for name in environment if name.startswith("OUZEL_")} <= VARIABLES
        drain_s = float(environment["OUZEL_DRAIN_GRACE_S"]) + float(
            environment["OUZEL_DRAIN_TIMEOUT_S"]
        )
        assert float(server["stop_grace_period"].removesuffix("s")) > drain_s + 20
        assert server["read_only"] and server["cap_drop"] == ["ALL"]


def test_the_server_for_retrieval_has_options_that_there_are() -> None:
    [server] = yaml.safe_load((RETRIEVAL / "compose.yaml").read_text())["services"].values()
    environment = server["environment"]
    [serve, *arguments] = server["command"]
    mounted = dict(volume.removesuffix(":ro").split(":") for volume in server["volumes"])
    inside = {path: str(RETRIEVAL / file) for file, path in mounted.items() if file[0] == "."}
    options = read_command_line([inside.get(each, each) for each in arguments], {})

    assert serve == "serve"
    assert [settings.model.served_model_name for settings in options.all_models] == [
        ("chat",),
        ("embeddings",),
        ("reranker",),
    ]
    assert {name for name in environment if name.startswith("OUZEL_")} <= VARIABLES
    assert float(server["stop_grace_period"].removesuffix("s")) > 20 + float(
        environment["OUZEL_DRAIN_TIMEOUT_S"]
    )
    assert server["read_only"] and server["cap_drop"] == ["ALL"]
    assert set(IMAGE.volumes) <= {*mounted.values()}


def test_the_proxy_knows_all_servers() -> None:
    proxy = (ROOT / "deploy" / "compose" / "haproxy.cfg").read_text()
    servers = {name for name in COMPOSE["services"] if name.startswith("ouzel")}
    assert set(re.findall(r"^ +server (\S+) \1:8000$", proxy, re.M)) == servers


def test_secrets_are_in_the_environment_only() -> None:
    for service in COMPOSE["services"].values():
        assert "PASSWORD" not in str(service.get("command", "")) + str(
            service.get("healthcheck", "")
        )


@pytest.mark.release("what the image has, built from the lock file and started on a read-only root")
@pytest.mark.serves
def test_the_image() -> None:
    assert image_command.main([]) == 0
