import pytest

from tests.kernels.library import LEVELS, supported_levels


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name not in supported_levels():
        pytest.skip(f"this processor has no {name}")
    return name
