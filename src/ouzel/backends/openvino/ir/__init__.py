"""Optimum exports OpenVINO IR directories: graphs as `openvino_*.xml` and `.bin`, and `config.json`."""

from pathlib import Path

from ouzel.backends.openvino.ir.text import TEXT_FILE
from ouzel.backends.openvino.ir.text import load_text_model as load_ir

__all__ = ["is_ir_directory", "load_ir"]


def is_ir_directory(directory: Path) -> bool:
    return (directory / TEXT_FILE).is_file()
