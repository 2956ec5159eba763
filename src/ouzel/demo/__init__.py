"""Names the bundled demo models: one reads text, the other also images; their cards are here."""

from pathlib import Path

MODEL_DIRECTORY = Path(__file__).parent / "model"
VISION_MODEL_DIRECTORY = Path(__file__).parent / "vision_model"
