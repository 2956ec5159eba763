"""POST /v1/config/reload: who may, and what is said where there is nothing to read again."""

import httpx
import pytest

from ouzel.config import ServerConfig
from tests.api.serving import running_server

PATH = "/v1/config/reload"
NO_FILE = "this server has read its models from no file: --config or --config_path names one"


def asked(config: ServerConfig, key: str = "") -> httpx.Response:
    with running_server(config=config) as server, server.client() as http:
        return http.post(PATH, headers={"authorization": f"Bearer {key}"} if key else {})


@pytest.mark.parametrize(
    ("config", "key", "status"),
    [
        (ServerConfig(), "", 401),
        (ServerConfig(admin_api_key="sk-admin"), "", 401),
        (ServerConfig(admin_api_key="sk-admin", api_key=("sk-user",)), "sk-user", 401),
        (ServerConfig(admin_api_key="sk-admin", api_key=("sk-user",)), "sk-admin", 400),
        (ServerConfig(profile="ovms"), "", 400),
        (ServerConfig(profile="ovms", api_key=("sk-user",)), "", 401),
        (ServerConfig(profile="ovms", api_key=("sk-user",)), "sk-user", 400),
        (ServerConfig(profile="ovms", api_key=("sk-user",), admin_api_key="sk-admin"), "sk-user", 401),
        (ServerConfig(profile="ovms", api_key=("sk-user",), admin_api_key="sk-admin"), "sk-admin", 400),
    ],
)
def test_only_who_may_change_a_server_has_it_read_its_models_again(config: ServerConfig, key: str, status: int) -> None:
    response = asked(config, key)

    assert response.status_code == status
    assert (NO_FILE in response.text) == (status == 400)
