"""The paths of health checks answer as OVMS's do, in every profile."""

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.server_setup import ALIAS, MODEL
from tests.api.serving import running_server

READY = ["/v2/health/ready", f"/v2/models/{MODEL}/ready", f"/v2/models/{ALIAS}/ready"]


@pytest.mark.parametrize("path", ["/v2/health/live", *READY])
def test_the_health_checks_say_it_with_the_status_alone(
    any_profile: httpx.Client, path: str
) -> None:
    response = any_profile.get(path)
    assert (response.status_code, response.content) == (200, b"")


def test_the_state_of_each_name(any_profile: httpx.Client) -> None:
    status = {"error_code": "OK", "error_message": "OK"}
    version = {"version": "1", "state": "AVAILABLE", "status": status}
    answer = any_profile.get("/v1/config").json()
    assert answer[MODEL] == {"model_version_status": [version]}
    assert set(answer) == {model["id"] for model in any_profile.get("/v3/models").json()["data"]}


@pytest.mark.parametrize("path", ["/v3/models", "/v1/models", "/v3/v1/models"])
def test_the_list_of_models_has_the_keys_of_ovms(any_profile: httpx.Client, path: str) -> None:
    answer = any_profile.get(path).json()
    assert answer["object"] == "list"
    assert {"id", "object", "created", "owned_by"} <= answer["data"][0].keys()
    assert any_profile.get(f"{path}/{MODEL}").json() == answer["data"][0]


def test_a_server_that_drains_is_live_and_not_ready() -> None:
    with running_server(config=ServerConfig(profile="ovms")) as server, server.client() as http:
        server.run(server.engine.drain(0))
        assert [http.get(path).status_code for path in READY] == [503] * 3
        assert http.get("/v2/health/live").status_code == 200
        (version,) = http.get("/v1/config").json()[MODEL]["model_version_status"]
        assert version["state"] == "UNLOADING"
