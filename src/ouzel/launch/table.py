"""Lists the clients that `ouzel launch` can start."""

from collections.abc import Mapping

from ouzel.launch.client import Client
from ouzel.launch.clients.aider import prepare_aider
from ouzel.launch.clients.claude import prepare_claude
from ouzel.launch.clients.codex import prepare_codex
from ouzel.launch.clients.continue_cli import prepare_continue
from ouzel.launch.clients.opencode import prepare_opencode
from ouzel.launch.clients.qwen import prepare_qwen

CLIENTS: Mapping[str, Client] = {
    "claude": Client(
        "Claude Code", "claude", "npm install -g @anthropic-ai/claude-code", prepare_claude
    ),
    "codex": Client("Codex CLI", "codex", "npm install -g @openai/codex", prepare_codex),
    "opencode": Client("opencode", "opencode", "npm install -g opencode-ai", prepare_opencode),
    "qwen": Client("Qwen Code", "qwen", "npm install -g @qwen-code/qwen-code", prepare_qwen),
    "aider": Client("aider", "aider", "pip install aider-chat", prepare_aider),
    "continue": Client("Continue", "cn", "npm install -g @continuedev/cli", prepare_continue),
}
