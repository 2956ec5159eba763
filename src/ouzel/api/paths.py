"""Where the API stands."""

PREFIXES = ("/v1", "/v3", "/v3/v1")  # the same API: OpenAI's path, and those of OpenVINO Model Server
