"""Exports golden checkpoints that see to tests/backends/optimum_ir_vision/. See README.md."""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from optimum.commands.optimum_cli import main as optimum_cli
from optimum.exporters.openvino import model_configs
from optimum.exporters.openvino.input_generators import DummyQwen2VLVisionEmbedInputGenerator
from safetensors.torch import load_file, save_file

TESTS = Path(__file__).parents[2] / "tests" / "backends"
FORMATS = {"llava": "fp32", "qwen2_5_vl": "fp32", "qwen2_vl": "int8"}
NEEDLESS = ("generation_config.json", "openvino_config.json")
PICTURE_SIDE = 64  # pixels


class SmallPicture(DummyQwen2VLVisionEmbedInputGenerator):  # type: ignore[misc]  # untyped
    """Stands for the picture that is traced, whose sides must be multiples of two patches: 420 is none of 4 pixels'."""

    def __init__(
        self, *arguments: Any, **named: Any
    ) -> None:  # Any: whatever the exporter hands over
        super().__init__(*arguments, **named | {"width": PICTURE_SIDE, "height": PICTURE_SIDE})


def write_as_before(checkpoint: Path, out: Path) -> None:
    """Writes config.json and names of tensors as transformers 4 reads them."""
    config = json.loads((checkpoint / "config.json").read_text())
    for section in (config["text_config"], config["vision_config"]):
        rope = section.pop("rope_parameters", None)
        if rope is not None and section is config["text_config"]:
            section["rope_theta"] = rope["rope_theta"]
            if "mrope_section" in rope:
                section["rope_scaling"] = {"type": "mrope", "mrope_section": rope["mrope_section"]}
    (out / "config.json").write_text(json.dumps(config, indent=2))
    tensors = load_file(checkpoint / "model.safetensors")
    renamed = {
        name.replace("vision_tower.", "vision_tower.vision_model."): each
        for name, each in tensors.items()
    }
    save_file(renamed, out / "model.safetensors", {"format": "pt"})


def export(name: str, weight_format: str) -> None:
    out = TESTS / "optimum_ir_vision" / f"{name}-{weight_format}"
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as checkpoint:
        write_as_before(TESTS / "golden_vision" / name, Path(checkpoint))
        words = ["export", "openvino", "--model", checkpoint, "--task", "image-text-to-text"]
        sys.argv = ["optimum-cli", *words, "--weight-format", weight_format, str(out)]
        optimum_cli()
    for needless in NEEDLESS:
        (out / needless).unlink(missing_ok=True)


def main() -> None:
    model_configs.Qwen2VLOpenVINOConfig.DUMMY_INPUT_GENERATOR_CLASSES = (SmallPicture,)
    for name in sys.argv[1:] or FORMATS:
        export(name, FORMATS[name])


if __name__ == "__main__":
    main()
