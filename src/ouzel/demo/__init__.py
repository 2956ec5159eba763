"""The bundled demo models: one reads text, the other pictures too. Their cards are beside this file."""

from pathlib import Path

MODEL_DIRECTORY = Path(__file__).parent / "model"
VISION_MODEL_DIRECTORY = Path(__file__).parent / "vision_model"
