"""Makes the settings of Continue's CLI: a file of one model, in Continue's schema v1."""

from pathlib import Path

import yaml

from ouzel.launch.client import KEY_VARIABLE, NO_KEY, Setup, Target

_FILE = "config.yaml"


def prepare_continue(target: Target, directory: Path) -> Setup:
    model = {
        "name": "Ouzel",
        "provider": "openai",
        "model": target.model,
        "apiBase": target.base_url,
        "apiKey": f"${{{{ secrets.{KEY_VARIABLE} }}}}" if target.api_key else NO_KEY,
        "roles": ["chat", "edit", "apply"],
        "capabilities": ["tool_use"],
        "defaultCompletionOptions": {
            "contextLength": target.context,
            "maxTokens": target.max_output_tokens,
        },
    }
    settings = {"name": "Ouzel", "version": "1.0.0", "schema": "v1", "models": [model]}
    return Setup(
        files={_FILE: yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)},
        variables={KEY_VARIABLE: target.api_key} if target.api_key else {},
        arguments=("--config", str(directory / _FILE)),
    )
