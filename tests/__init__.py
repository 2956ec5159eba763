"""Where no bytecode is written beside the sources, it is kept in .cache/ for this run and the next.

Without any each of the many servers that the tests start would compile a thousand modules again.
"""

import os
import sys
from pathlib import Path

if sys.dont_write_bytecode and sys.pycache_prefix is None:
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(
        Path(__file__).parents[1] / ".cache" / "bytecode"
    )
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else it was -B
