"""The MODEL argument becomes a local directory and a name."""

from dataclasses import dataclass
from pathlib import Path

from ouzel.demo import MODEL_DIRECTORY
from ouzel.errors import ModelLoadError

DEMO_NAME = "ouzel-demo"


@dataclass(frozen=True, slots=True)
class LocalModel:
    directory: Path
    name: str  # what clients call it, unless --served-model-name says otherwise


def locate_model(model: str) -> LocalModel:
    """Finds the bundled demo model for "", else a directory, else downloads from the hub. Raises ModelLoadError."""
    if not model:
        return LocalModel(MODEL_DIRECTORY, DEMO_NAME)
    path = Path(model).expanduser()
    if path.is_dir():
        if not any((path / name).is_file() for name in ("config.json", "openvino_model.xml")):
            raise ModelLoadError(f"{path} holds no model: neither config.json nor openvino_model.xml is there")
        return LocalModel(path, path.resolve().name)
    if path.exists():
        raise ModelLoadError(f"{model} is a file; give the directory that holds config.json and the weights")
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") != 1:
        raise ModelLoadError(f"there is no directory {model}")
    from ouzel.cli.hub import download  # noqa: PLC0415  slow to import, seldom needed

    return LocalModel(download(model), model)
