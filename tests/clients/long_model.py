"""A copy of the demo model that takes the prompts of coding agents."""

import json
import shutil
from pathlib import Path

from ouzel.demo import MODEL_DIRECTORY

TEMPLATE = Path(__file__).parent / "long_chat_template.jinja"
MAX_POSITION_EMBEDDINGS = 65536
# tokens that each layer sees; the model has learned from conversations no longer than that
WINDOW = 512


def make_long_model(directory: Path) -> Path:
    """Its positions are relative to each other, so that windows over them mean the same anywhere."""
    shutil.copytree(MODEL_DIRECTORY, directory, dirs_exist_ok=True)
    config_file = directory / "config.json"
    config = json.loads(config_file.read_text())
    config |= {
        "max_position_embeddings": MAX_POSITION_EMBEDDINGS,
        "use_sliding_window": True,
        "sliding_window": WINDOW,
        "max_window_layers": 0,
    }
    config_file.write_text(json.dumps(config))
    return directory
