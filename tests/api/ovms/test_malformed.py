"""Hundreds of requests that are wrong in one field: each is refused in OVMS's way, with the name of the field."""

import httpx
import pytest

from tests.api.malformed import Malformed, malformed_requests
from tests.api.test_malformed import GOOD


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_each_malformed_request_is_answered_with_one_text(ovms: httpx.Client, path: str) -> None:
    requests = list(malformed_requests(path, GOOD[path]))
    assert len(requests) > 300
    complaints = [complaint(request, ovms.post(path, json=request.body)) for request in requests]
    assert not any(complaints), "\n".join(filter(None, complaints))
    assert ovms.post(path, json=GOOD[path]).status_code == 200


def complaint(request: Malformed, response: httpx.Response) -> str:
    """What is wrong with the answer; nothing if it is as it should be."""
    said = f"{request.field} ({request.what}): {response.status_code} {response.text[:300]}"
    body = response.json()
    if response.status_code not in (400, 404, 412) or list(body) != ["error"]:
        return said
    names = ("requested name",) if response.status_code == 404 else (request.field,)
    return "" if any(name in body["error"] for name in names) else said
