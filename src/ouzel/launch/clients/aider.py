"""Makes the settings of aider: flags, and a file with the context of the model.

The user's own .aider.conf.yml stays in force; flags come before it.
"""

import json
from pathlib import Path

from ouzel.launch.client import KEY_VARIABLE, Setup, Target

_FILE = "model-metadata.json"


def prepare_aider(target: Target, directory: Path) -> Setup:
    name = f"openai/{target.model}"
    facts = {
        "max_input_tokens": target.context - target.max_output_tokens,
        "max_output_tokens": target.max_output_tokens,
        "litellm_provider": "openai",
        "mode": "chat",
    }
    return Setup(
        files={_FILE: json.dumps({name: facts}, indent=2) + "\n"},
        variables={KEY_VARIABLE: target.key},
        arguments=(
            *("--model", name),
            *("--openai-api-base", target.base_url),
            *("--model-metadata-file", str(directory / _FILE)),
            "--no-show-model-warnings",
        ),
    )
