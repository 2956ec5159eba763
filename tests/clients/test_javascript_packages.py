"""npm packages that speak to the server: what they do is in `scripts/javascript.mjs`."""

import shutil
from pathlib import Path

from tests.cli.running import RunningServer
from tests.clients.clients import Clients, packages

SCRIPT = Path(__file__).parent / "scripts" / "javascript.mjs"


def test_vercels_providers_and_openais_package_find_all_that_they_ask_for(
    clients: Clients, server: RunningServer
) -> None:
    modules = packages("javascript") / "node_modules"
    (clients.home / "node_modules").symlink_to(modules)  # a module's imports are looked for beside it
    script = shutil.copy(SCRIPT, clients.home)

    clients.run("node", script, environment={"ROOT": server.root})
