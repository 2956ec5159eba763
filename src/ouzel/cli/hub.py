"""This is imported only when a model of the Hugging Face hub is named: its library takes a quarter of a second."""

from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

from ouzel.errors import ModelLoadError

_FILES = ["*.json", "*.jinja", "*.txt", "*.model", "*.safetensors", "openvino_*.xml", "openvino_*.bin"]


def download(repo_id: str) -> Path:
    """Returns the model's directory in the hub's cache. Raises ModelLoadError."""
    try:
        return Path(snapshot_download(repo_id, allow_patterns=_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ModelLoadError(
            f"there is no directory {repo_id}, and it could not be fetched from the Hugging Face hub: {error}"
        ) from error
