from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
GOLDEN_NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
