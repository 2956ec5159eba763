"""Stores the bytecode of a run in .cache/ if Python would write none beside the sources.

Without stored bytecode, each of the many servers that tests start would compile a thousand modules.
"""

import os
import sys
from pathlib import Path

if sys.dont_write_bytecode and sys.pycache_prefix is None:
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(
        Path(__file__).parents[1] / ".cache" / "bytecode"
    )
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the interpreter was started with -B
