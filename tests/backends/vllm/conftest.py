import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

STAND_IN = Path(__file__).parent / "stand_in"


@pytest.fixture(autouse=True, scope="module")
def vllm_is_the_stand_in() -> Iterator[None]:
    """Whoever imports `vllm` gets it, in these modules' process as long as they run."""
    sys.path.insert(0, str(STAND_IN))
    yield
    sys.path.remove(str(STAND_IN))
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        del sys.modules[name]
