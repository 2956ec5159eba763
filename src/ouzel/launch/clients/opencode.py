"""Makes the settings of opencode: a provider in a file, and the choice of its model."""

import json
from pathlib import Path

from ouzel.launch.client import KEY_VARIABLE, NO_KEY, Setup, Target

_FILE = "opencode.json"


def prepare_opencode(target: Target, directory: Path) -> Setup:
    model = {
        "name": target.model,
        "limit": {"context": target.context, "output": target.max_output_tokens},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Ouzel",
        "options": {
            "baseURL": target.base_url,
            "apiKey": f"{{env:{KEY_VARIABLE}}}" if target.api_key else NO_KEY,
        },
        "models": {target.model: model},
    }
    choice = {"model": f"ouzel/{target.model}", "small_model": f"ouzel/{target.model}"}
    settings = {
        "$schema": "https://opencode.ai/config.json",
        **choice,
        "provider": {"ouzel": provider},
    }
    variables = {
        "OPENCODE_CONFIG": str(directory / _FILE),
        # The file of a project would overrule the file above.
        "OPENCODE_CONFIG_CONTENT": json.dumps(choice),
    }
    if target.api_key:
        variables[KEY_VARIABLE] = target.api_key
    return Setup(files={_FILE: json.dumps(settings, indent=2) + "\n"}, variables=variables)
