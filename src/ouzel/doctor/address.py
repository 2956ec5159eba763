"""Finds out whether an Ouzel or another program listens at an address."""

import http.client
import json
import ssl
from ipaddress import ip_address

_TIMEOUT_S = 2.0
_MAX_BYTES = 1 << 16


def server_at(host: str, port: int) -> str:
    """Returns version and models of the Ouzel server at an address; empty for other programs."""
    return _ask(http.client.HTTPConnection(_reachable(host), port, timeout=_TIMEOUT_S)) or _ask(
        http.client.HTTPSConnection(
            _reachable(host), port, timeout=_TIMEOUT_S, context=_unverified()
        )
    )


def _ask(connection: http.client.HTTPConnection) -> str:
    """Returns the description of an Ouzel server, from the JSON at `/`, which needs no key."""
    try:
        connection.request("GET", "/", headers={"Accept": "application/json"})
        found = json.loads(connection.getresponse().read(_MAX_BYTES))
        if found["server"] != "Ouzel":
            return ""
        text = f"Ouzel {found['version']:.40} with {', '.join(found['models'])[:200] or 'no model'}"
        # A program that claims to be Ouzel may send escape sequences.
        return "".join(filter(str.isprintable, text))
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return ""
    finally:
        connection.close()


def _reachable(host: str) -> str:
    """Returns the loopback address for a server that listens on all addresses."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "::1"
    return host


def _unverified() -> ssl.SSLContext:
    """Returns a TLS context that accepts any certificate: no secret is sent and nothing trusted."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
