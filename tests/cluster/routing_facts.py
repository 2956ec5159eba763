"""Prints facts about Ray's own code and about built applications as JSON.

A Python that has Ray runs this file.
"""

import inspect
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any  # values of Ray's own types

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


def build_application(lines: Lines, **arguments: Any) -> list[Any]:
    """Builds an application; returns whether it has a door, and the log lines."""
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
    facts["prefix"] = build_application(lines)
    facts["least connections"] = build_application(lines, routing="least_connections")
    facts["one replica"] = build_application(lines, num_replicas=1)
    for name in NEEDED:
        del os.environ[name]
        facts[f"without {name}"] = build_application(lines)
        os.environ[name] = "1"
    del Application._with_ingress_request_router
    facts["without a hook"] = build_application(lines)
    sys.stdout.write(json.dumps(facts))


if __name__ == "__main__":
    main()
