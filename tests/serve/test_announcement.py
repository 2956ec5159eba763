"""A server that listens prints its models, its addresses and the need of a key."""

import re
import socket
from pathlib import Path

import httpx

from ouzel.demo import MODEL_DIRECTORY
from ouzel.machine.own_addresses import own_addresses
from tests.serve.running import serving


def test_two_models_at_every_address_without_a_key(tmp_path: Path) -> None:
    models = [
        argument for name in ("one", "two") for argument in ("--model", f"{name}={MODEL_DIRECTORY}")
    ]
    with serving(*models, "--host", "0.0.0.0", "--log-level", "info", cache_dir=tmp_path) as server:
        elsewhere = re.search(r"^From other machines: (.*)$", server.announcement, re.M)
        answers = (
            [httpx.get(f"{url}/models").status_code for url in elsewhere[1].split(", ")]
            if elsewhere
            else []
        )
        server.process.terminate()
        errors = server.process.communicate()[1]

    assert re.search(r" serves one, two at http://127\.0\.0\.1:", server.announcement)
    assert len(answers) == min(len(own_addresses(with_v6=False)), 4)
    assert set(answers) <= {200}
    assert re.search(
        r"WARNING .*every client that reaches 0\.0\.0\.0 port \d+ may use this server", errors
    )
    assert "StepCosts" not in errors


def test_a_server_with_keys_lists_their_fingerprints_and_warns_of_nothing(tmp_path: Path) -> None:
    keys = ("--api-key", "sk-first", "--api-key", "sk-second")
    with serving("--host", "0.0.0.0", *keys, "--log-level", "info", cache_dir=tmp_path) as server:
        server.process.terminate()
        errors = server.process.communicate()[1]

    assert "everybody" not in errors
    assert re.search(r"fingerprints of the API keys, .*: [0-9a-f]{8}, [0-9a-f]{8}$", errors, re.M)
    assert "sk-first" not in errors


def test_the_addresses_are_those_of_this_machine() -> None:
    for address in own_addresses(with_v6=False):
        with socket.socket() as bound:
            bound.bind((address, 0))  # fails for an address of another machine
        assert not address.startswith("127.")
