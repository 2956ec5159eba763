"""Makes a copy of the demo model that takes the long prompts of coding agents."""

import json
import shutil
from pathlib import Path

from ouzel.demo import MODEL_DIRECTORY

TEMPLATE = Path(__file__).parent / "long_chat_template.jinja"
MAX_POSITION_EMBEDDINGS = 65536
# tokens that each layer sees; the model was trained on conversations of at most this length
WINDOW = 512


def make_long_model(directory: Path) -> Path:
    """Copies the demo model and gives it sliding windows.

    Its positions are relative, so windows over them mean the same at each place of a long prompt.
    """
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
