"""Starts one server for each profile, which all files of a process share."""

from collections.abc import Iterator

import pytest

from tests.peer_documents.peer import Peer, serving_peer

BOTH = pytest.mark.parametrize("peer", ["default", "ovms"], indirect=True, scope="package")
DEFAULT = pytest.mark.parametrize("peer", ["default"], indirect=True, scope="package")
OVMS = pytest.mark.parametrize("peer", ["ovms"], indirect=True, scope="package")
LMI = pytest.mark.parametrize("peer", ["lmi"], indirect=True, scope="package")


@pytest.fixture(scope="package")
def peer(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Peer]:
    with serving_peer(request.param, tmp_path_factory.mktemp("peer")) as peer:
        yield peer
