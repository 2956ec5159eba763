"""Run by a Python that has Ray: what of Ray's own the door needs, and how applications are built, as JSON."""

import inspect
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any  # Ray's

from ray import serve
from ray.serve.deployment import Application
from ray.serve.handle import DeploymentHandle
from ray.serve.request_router import ReplicaID, RequestRouter, RunningReplica

from ouzel.cluster.ray import build

NEEDED = ("RAY_SERVE_ENABLE_HA_PROXY", "RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY")


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def built(lines: Lines, **arguments: Any) -> list[Any]:
    """Whether there is a door, and what was said."""
    lines.lines.clear()
    application = build({"num_replicas": 2, "store": False, **arguments})
    return [getattr(application, "_ingress_request_router", None) is not None, list(lines.lines)]


def main() -> None:
    lines = Lines()
    logging.getLogger("ouzel").addHandler(lines)
    lua = (Path(serve.__file__).parent / "_private" / "ingress_request_router.lua.tmpl").read_text()
    facts = {
        "hook": list(inspect.signature(Application._with_ingress_request_router).parameters),
        "handles begin": list(inspect.signature(DeploymentHandle._init).parameters),
        "names of replicas": hasattr(ReplicaID, "to_full_id_str"),
        "list of replicas": [
            hasattr(RequestRouter, "curr_replicas"),
            hasattr(RunningReplica, "routing_stats"),
        ],
        "question": "POST /internal/route HTTP/1.0" in lua,
        "answer": """match('"replica_id"%s*:%s*"([^"]+)"')""" in lua,
    }
    os.environ |= dict.fromkeys(NEEDED, "1")
    facts["prefix"] = built(lines)
    facts["least connections"] = built(lines, routing="least_connections")
    facts["one replica"] = built(lines, num_replicas=1)
    for name in NEEDED:
        del os.environ[name]
        facts[f"without {name}"] = built(lines)
        os.environ[name] = "1"
    del Application._with_ingress_request_router
    facts["without a hook"] = built(lines)
    sys.stdout.write(json.dumps(facts))


if __name__ == "__main__":
    main()
