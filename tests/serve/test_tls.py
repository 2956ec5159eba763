"""Wrong certificate files are refused at the start, with the name of the option."""

from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from ouzel.config import ServerConfig
from ouzel.options.invalid_option import InvalidOption
from ouzel.serve.tls import tls_context


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    leaf = authority.issue_cert("localhost")
    key_pem = leaf.private_key_pem.bytes()
    authority.cert_pem.write_to_path(directory / "ca.pem")
    leaf.cert_chain_pems[0].write_to_path(directory / "cert.pem")
    leaf.private_key_and_cert_chain_pem.write_to_path(directory / "both.pem")
    (directory / "key.pem").write_bytes(key_pem)
    authority.issue_cert("localhost").private_key_pem.write_to_path(directory / "other-key.pem")
    encrypted = load_pem_private_key(key_pem, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pass phrase")
    )
    (directory / "encrypted.pem").write_bytes(encrypted)
    return directory


def in_directory(directory: Path, options: dict[str, str]) -> dict[str, str]:
    return {
        name: value if "auth" in name else str(directory / value) for name, value in options.items()
    }


@pytest.mark.parametrize(
    "options",
    [
        {"ssl_certfile": "cert.pem", "ssl_keyfile": "key.pem"},
        {"ssl_certfile": "both.pem"},
        {"ssl_certfile": "both.pem", "ssl_ca_certs": "ca.pem", "ssl_client_auth": "optional"},
    ],
)
def test_good_files(files: Path, options: dict[str, str]) -> None:
    given: dict[str, Any] = dict(in_directory(files, options))
    assert tls_context(ServerConfig(**given)) is not None


def test_without_a_certificate_there_is_no_tls() -> None:
    assert tls_context(ServerConfig()) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ssl_certfile": "nowhere.pem"}, "--ssl-certfile .*nowhere.pem: must be a file"),
        ({"ssl_certfile": "."}, "--ssl-certfile .*: must be a file"),
        (
            {"ssl_certfile": "cert.pem", "ssl_keyfile": "nowhere.pem"},
            "--ssl-keyfile .*nowhere.pem: must be a file",
        ),
        ({"ssl_certfile": "cert.pem"}, "cert.pem: must be a PEM certificate and its private key"),
        ({"ssl_certfile": "cert.pem", "ssl_keyfile": "other-key.pem"}, "other-key.pem: must be"),
        (
            {"ssl_certfile": "cert.pem", "ssl_keyfile": "encrypted.pem"},
            "encrypted.pem: must be a key without a pass phrase",
        ),
        ({"ssl_keyfile": "key.pem"}, "need --ssl-certfile"),
        ({"ssl_client_auth": "required"}, "need --ssl-certfile"),
        ({"ssl_certfile": "both.pem", "ssl_client_auth": "required"}, "must be given together"),
        ({"ssl_certfile": "both.pem", "ssl_ca_certs": "ca.pem"}, "must be given together"),
        (
            {"ssl_certfile": "both.pem", "ssl_ca_certs": "key.pem", "ssl_client_auth": "required"},
            "--ssl-ca-certs .*key.pem: must hold PEM certificates",
        ),
    ],
)
def test_bad_files_are_named(files: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        tls_context(ServerConfig(**in_directory(files, options)))  # type: ignore[arg-type]
