"""The bundled demo model; its card is README.md beside this file."""

from pathlib import Path

MODEL_DIRECTORY = Path(__file__).parent / "model"
