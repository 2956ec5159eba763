"""POST /v1/config/reload needs a right, and a configuration file to read again."""

from collections.abc import Mapping

import pytest

from ouzel.config import ServerConfig
from tests.api.serving import running_server

PATH = "/v1/config/reload"
NO_FILE = "this server has read its models from no file: set --config or --config_path"
ADMIN, USER = "sk-admin", "sk-user"


@pytest.mark.parametrize(
    ("config", "status_by_key"),
    [
        (ServerConfig(), {"": 401, USER: 401}),
        (ServerConfig(admin_api_key=ADMIN, api_key=(USER,)), {"": 401, USER: 401, ADMIN: 400}),
        (ServerConfig(profile="ovms"), {"": 400}),
        (ServerConfig(profile="ovms", api_key=(USER,)), {"": 401, USER: 400}),
        (
            ServerConfig(profile="ovms", admin_api_key=ADMIN, api_key=(USER,)),
            {"": 401, USER: 401, ADMIN: 400},
        ),
    ],
)
def test_a_reload_needs_the_right_to_change_the_server(
    config: ServerConfig, status_by_key: Mapping[str, int]
) -> None:
    with running_server(config=config) as server, server.client() as http:
        responses = {
            key: http.post(PATH, headers={"api-key": key} if key else {}) for key in status_by_key
        }

    assert {key: response.status_code for key, response in responses.items()} == status_by_key
    assert all(
        (NO_FILE in response.text) == (response.status_code == 400)
        for response in responses.values()
    )
