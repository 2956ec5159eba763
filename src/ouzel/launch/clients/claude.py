"""Makes the settings of Claude Code: a file, and a directory of its own for its state."""

import json
from pathlib import Path

from ouzel.launch.client import Setup, Target

_FILE = "ouzel-settings.json"
# With these variables Claude Code would use another service or another key.
_OTHER_SERVICES = (
    "ANTHROPIC_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
)


def prepare_claude(target: Target, directory: Path) -> Setup:
    settings = {
        "ANTHROPIC_BASE_URL": target.root,
        "ANTHROPIC_MODEL": target.model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": target.model,
        "ANTHROPIC_DEFAULT_SONNET_MODEL": target.model,
        "ANTHROPIC_DEFAULT_OPUS_MODEL": target.model,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(target.context),
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(target.max_output_tokens),
    }
    return Setup(
        files={_FILE: json.dumps({"env": settings}, indent=2) + "\n"},
        variables={
            "CLAUDE_CONFIG_DIR": str(directory),
            "ANTHROPIC_BASE_URL": target.root,
            "ANTHROPIC_AUTH_TOKEN": target.key,
        },
        removed_variables=_OTHER_SERVICES,
        arguments=("--settings", str(directory / _FILE)),
    )
