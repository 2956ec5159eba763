"""Prepares the processes of a run before they import any package.

They store bytecode in .cache/ if Python would write none beside the sources: else each of the many
servers that tests start would compile a thousand modules. Numpy computes products in one thread:
its threads wait in loops, which took three times the CPU on cores with other work.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if sys.dont_write_bytecode and sys.pycache_prefix is None:
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(
        Path(__file__).parents[1] / ".cache" / "bytecode"
    )
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the interpreter was started with -B
