"""Each of hundreds of requests with one wrong field is refused in OVMS's form, and names it."""

import httpx
import pytest

from tests.api.malformed import Malformed, malformed_requests
from tests.api.test_malformed import GOOD


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_each_malformed_request_is_answered_with_one_text(ovms: httpx.Client, path: str) -> None:
    requests = list(malformed_requests(path, GOOD[path]))
    assert len(requests) > 300
    faults = [find_fault(request, ovms.post(path, json=request.body)) for request in requests]
    assert not any(faults), "\n".join(filter(None, faults))
    assert ovms.post(path, json=GOOD[path]).status_code == 200


def find_fault(request: Malformed, response: httpx.Response) -> str:
    """Returns a description of a wrong answer, or an empty text if the answer is right."""
    fault = f"{request.field} ({request.what}): {response.status_code} {response.text[:300]}"
    body = response.json()
    if response.status_code not in (400, 404, 412) or list(body) != ["error"]:
        return fault
    names = ("requested name",) if response.status_code == 404 else (request.field,)
    return "" if any(name in body["error"] for name in names) else fault
