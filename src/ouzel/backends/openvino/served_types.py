"""Lists the model types that have a file in a folder of families.

The folders do not import each other: a message about one names types of all.
"""

import pkgutil
from pathlib import Path
from typing import Literal

Folder = Literal["models", "encoders", "vision", "hearing", "speech"]


def list_types(*folders: Folder) -> list[str]:
    """Returns the names of the files in the folders."""
    paths = [str(Path(__file__).parent / folder) for folder in folders]
    return sorted(module.name for module in pkgutil.iter_modules(paths))
