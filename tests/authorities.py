"""Makes the HTTP clients of a test process read one authority's certificate instead of 140.

Each client that httpx, httpx2 or openai makes reads all authorities of the machine or of certifi,
for 30 ms of CPU. The tests make thousands of clients, and no client asks a server of the internet.
"""

import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any  # authorities in memory, which are handed on

import certifi
import pytest


def trust_one_authority() -> Callable[[], None]:
    """Replaces the authorities of the machine and of certifi; returns the undo function."""
    end = "-----END CERTIFICATE-----\n"
    first = Path(certifi.where()).read_text().partition(end)[0] + end
    replaced = _places_of_authorities()
    load = ssl.SSLContext.load_verify_locations

    def load_one(
        self: ssl.SSLContext, cafile: Any = None, capath: Any = None, cadata: Any = None
    ) -> None:
        if {cafile, capath} & replaced:
            load(self, cadata=first)
        else:
            load(self, cafile, capath, cadata)

    def load_default(self: ssl.SSLContext, _: object = None) -> None:
        load(self, cadata=first)

    patch = pytest.MonkeyPatch()
    patch.setattr(ssl.SSLContext, "load_verify_locations", load_one)
    patch.setattr(ssl.SSLContext, "load_default_certs", load_default)
    return patch.undo


def _places_of_authorities() -> set[str]:
    """Returns the files and directories that clients read without an authority of their own."""
    paths = ssl.get_default_verify_paths()
    given = (os.environ.get(name, "") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    known = (certifi.where(), paths.openssl_cafile, paths.openssl_capath)
    of_systems = (
        "/etc/ssl/cert.pem",
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/pki/tls/cert.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    )
    return {*given, *known, *of_systems} - {""}
