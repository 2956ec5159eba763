from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
GOLDEN_NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())

# One of each kind of graph has what others are left to a release.
KINDS = ["llama-bias", "qwen3", "gpt-oss", "qwen3_5", "granitemoehybrid", "deepseek-v2", "gemma4-shared"]
