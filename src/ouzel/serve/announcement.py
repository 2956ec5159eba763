"""Prints the address of the server and its models, and logs the accepted API keys."""

import logging
import shlex
import sys
from ipaddress import ip_address

import ouzel
from ouzel.api.endpoint.catalogue import Catalogue
from ouzel.api.endpoint.example import Example, make_chat_example, make_example
from ouzel.api.http.key_checks import hash_key
from ouzel.api.http.request_log import fingerprint
from ouzel.config import ServerConfig
from ouzel.machine.own_addresses import own_addresses
from ouzel.serve.listener import Listener

logger = logging.getLogger(__name__)

_MAX_AWAY = 8  # names of models that are not in memory
_MAX_ADDRESSES = 4  # a machine with containers has an address for each of their networks


def announce(catalogue: Catalogue, listener: Listener, server: ServerConfig) -> None:
    """Prints models, address and an example command; logs the API keys' fingerprints."""
    if server.api_key:
        known = ", ".join(fingerprint(hash_key(key.encode())) for key in server.api_key)
        logger.info("fingerprints of the API keys, in their order in the options: %s", known)
    elif _is_open(listener):
        logger.warning(
            "no API key is set: every client that reaches %s may use this server; set "
            "OUZEL_API_KEY or --api-key-file, or listen with --host 127.0.0.1",
            listener.address,
        )
    sys.stdout.write(_text(catalogue, listener, server))
    sys.stdout.flush()


def _text(catalogue: Catalogue, listener: Listener, server: ServerConfig) -> str:
    models = [each.model for each in catalogue]
    names = ", ".join([model.names[0] for model in models] + catalogue.away[:_MAX_AWAY])
    if (num_more := len(catalogue.away) - _MAX_AWAY) > 0:
        names += f" and {num_more} more"
    where = f"{listener.url}/v1"
    if listener.unix is not None:
        where += f" on the socket {listener.address}"
    lines = ["", f"Ouzel {ouzel.__version__} serves {names or 'no model yet'} at {where}"]
    elsewhere = [] if listener.unix is not None else _urls_elsewhere(listener)
    if elsewhere:
        lines += [f"From other machines: {', '.join(elsewhere)}"]
    if models or catalogue.away:
        example = make_example(models[0]) if models else make_chat_example(catalogue.away[0])
        lines += ["", f"  {_command(example, listener, server)}"]
    if listener.tls is not None:
        lines += ["  (add --cacert FILE if curl does not know the issuer of the certificate)"]
    if server.playground and listener.unix is None:
        lines += ["", f"  In a browser: {listener.url}/"]
    return "\n".join([*lines, "", ""])


def _command(example: Example, listener: Listener, server: ServerConfig) -> str:
    command = ["curl", f"{listener.url}/v1{example.path}"]
    if not example.is_form:
        command.append("-H 'Content-Type: application/json'")
    if listener.unix is not None:
        command.append(f"--unix-socket {shlex.quote(listener.address)}")
    if server.api_key:
        # The shell inserts the variable: keys are not printed.
        command.append('-H "Authorization: Bearer $API_KEY"')
    return " ".join([*command, *example.curl_arguments()])


def _is_open(listener: Listener) -> bool:
    """Tells whether the listener takes connections from other machines."""
    return listener.unix is None and not ip_address(listener.socket.getsockname()[0]).is_loopback


def _urls_elsewhere(listener: Listener) -> list[str]:
    """Returns URLs for other machines if the listener takes connections on all interfaces."""
    host, port = listener.socket.getsockname()[:2]
    if not ip_address(host).is_unspecified:
        return []
    scheme = "http" if listener.tls is None else "https"
    shown = own_addresses(with_v6=":" in host)[:_MAX_ADDRESSES]
    return [
        f"{scheme}://{f'[{address}]' if ':' in address else address}:{port}/v1" for address in shown
    ]
