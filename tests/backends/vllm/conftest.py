import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

STAND_IN = Path(__file__).parent / "stand_in"


@pytest.fixture(autouse=True, scope="module")
def replace_vllm() -> Iterator[None]:
    """Makes `import vllm` import the stand-in, in this process, while the tests of a module run."""
    sys.path.insert(0, str(STAND_IN))
    yield
    sys.path.remove(str(STAND_IN))
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        del sys.modules[name]
