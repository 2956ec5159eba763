"""A server with one engine and a server with two give the same answers.

The probe is the one with which Ray Serve is compared too.
"""

import pytest

from tests.cluster.probe import find_differences, run_probes
from tests.cluster.probed_models import write_models
from tests.serve.running import serving

pytestmark = pytest.mark.release(
    "one server and one with two engines, compared in all that the probe tries"
)
MAY_DIFFER = {"GET /health"}  # it names each engine


async def test_two_engines_answer_as_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    config = write_models(tmp_path_factory.mktemp("models"))
    outcomes = []
    for options in ((), ("--replicas", "2")):
        with serving(
            "--config", str(config), *options, cache_dir=tmp_path_factory.mktemp("cache")
        ) as server:
            outcomes.append(await run_probes([server.root]))
    one, two = outcomes

    assert not [outcome for outcome in one.values() if "cannot be tried" in str(outcome)]
    found = find_differences(one, two)
    assert found.keys() <= MAY_DIFFER, found
