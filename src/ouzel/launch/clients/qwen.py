"""Makes the settings of Qwen Code: system settings, which overrule the settings of a user."""

import json
from pathlib import Path

from ouzel.launch.client import KEY_VARIABLE, Setup, Target

_FILE = "settings.json"
# Qwen Code 0.24 rewrites files of other versions, and files without a version.
_FORMAT_VERSION = 4
_TIMEOUT_MS = 600_000  # a CPU computes the first prompt for minutes


def prepare_qwen(target: Target, directory: Path) -> Setup:
    settings = {
        "$version": _FORMAT_VERSION,
        "security": {"auth": {"selectedType": "openai"}},
        "model": {
            "name": target.model,
            "generationConfig": {
                "contextWindowSize": target.context,
                "timeout": _TIMEOUT_MS,
                "samplingParams": {"max_tokens": target.max_output_tokens},
            },
        },
    }
    return Setup(
        files={_FILE: json.dumps(settings, indent=2) + "\n"},
        variables={
            "QWEN_CODE_SYSTEM_SETTINGS_PATH": str(directory / _FILE),
            "OPENAI_BASE_URL": target.base_url,
            KEY_VARIABLE: target.key,
            "OPENAI_MODEL": target.model,
        },
        arguments=("--auth-type", "openai"),
    )
