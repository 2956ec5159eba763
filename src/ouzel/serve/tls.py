"""Reads the files of TLS at the start of the process."""

import os
import ssl
from pathlib import Path

from ouzel.config import ServerConfig
from ouzel.options.invalid_option import InvalidOption

_VERIFICATION = {
    "none": ssl.CERT_NONE,
    "optional": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def tls_context(config: ServerConfig) -> ssl.SSLContext | None:
    """Returns the TLS context of the options, or None without a certificate.

    Raises InvalidOption, which names the wrong file.
    """
    asks_clients = config.ssl_client_auth != "none"
    if not config.ssl_certfile:
        if config.ssl_keyfile or config.ssl_ca_certs or asks_clients:
            raise InvalidOption(
                "--ssl-keyfile, --ssl-ca-certs and --ssl-client-auth need --ssl-certfile"
            )
        return None
    if asks_clients != bool(config.ssl_ca_certs):
        raise InvalidOption(
            "--ssl-ca-certs and --ssl-client-auth optional or required must be given together"
        )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load_certificate(context, config.ssl_certfile, config.ssl_keyfile or config.ssl_certfile)
    context.verify_mode = _VERIFICATION[config.ssl_client_auth]
    if config.ssl_ca_certs:
        _check_readable("--ssl-ca-certs", config.ssl_ca_certs)
        try:
            context.load_verify_locations(config.ssl_ca_certs)
        except ssl.SSLError as error:
            raise InvalidOption(
                f"--ssl-ca-certs {config.ssl_ca_certs}: must hold PEM certificates"
            ) from error
    return context


def _load_certificate(context: ssl.SSLContext, certfile: str, keyfile: str) -> None:
    _check_readable("--ssl-certfile", certfile)
    _check_readable("--ssl-keyfile", keyfile)

    def refuse_to_ask() -> str:
        raise InvalidOption(
            f"--ssl-keyfile {keyfile}: must be a key without a pass phrase, given an encrypted one"
        )

    try:
        context.load_cert_chain(certfile, keyfile, password=refuse_to_ask)
    except ssl.SSLError as error:
        pair = f"--ssl-certfile {certfile} and --ssl-keyfile {keyfile}"
        raise InvalidOption(f"{pair}: must be a PEM certificate and its private key") from error


def _check_readable(flag: str, path: str) -> None:
    """Raises InvalidOption for an unreadable file: the error of `ssl` would not name it.

    The file is not opened: a pipe gives its content only once.
    """
    if Path(path).is_dir() or not os.access(path, os.R_OK):
        raise InvalidOption(f"{flag} {path}: must be a file that can be read")
