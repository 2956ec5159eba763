"""Groups the tests that share a process, and replaces processes that die.

The tests of a golden checkpoint share a process, as do the tests of each other file, because they
share objects that are slow to make. If a process dies (a fault in native code, a hang), the current
test has failed and is not run again. The tests behind it go to another process, and a new process
takes the place of the dead one.
"""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

from tests.backends import GOLDEN_NAMES

OF_CHECKPOINTS = {
    f"tests/backends/test_openvino_{name}.py" for name in ("golden", "positions", "scheduling")
}


class WorkGroups(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        if file not in OF_CHECKPOINTS or "[" not in test:
            return file
        parameters = test.partition("[")[2].rstrip("]")
        return max(
            (name for name in GOLDEN_NAMES if f"{parameters}-".startswith(f"{name}-")),
            key=len,
            default=file,
        )

    def _reschedule(self, node: WorkerController) -> None:
        # Another dead process may have a successor that still collects.
        if node in self.registered_collections:
            super()._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Returns the test during which the process died, which xdist itself would run again."""
        groups = self.assigned_work.pop(node)
        waiting = [
            nodeid for group in groups.values() for nodeid, is_done in group.items() if not is_done
        ]
        if not waiting:
            return None
        for name, group in groups.items():
            if left := {nodeid: False for nodeid in group if nodeid in waiting[1:]}:
                self.workqueue[name] = left
        for other in self.assigned_work:
            self._reschedule(other)
        return waiting[0]


class WorkerDeaths:
    """Fails a run in which a process died, and reports the death."""

    def __init__(self) -> None:
        self._said: dict[str, str] = {}  # process id -> place of the death

    def pytest_xdist_make_scheduler(
        self, config: pytest.Config, log: Producer
    ) -> LoadFileScheduling | None:
        return WorkGroups(config, log) if config.getoption("dist") == "loadfile" else None

    def pytest_testnodedown(self, node: WorkerController, error: object) -> None:
        if error is not None:
            self._said[node.gateway.id] = "outside of any test"

    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        self._said[report.node.gateway.id] = f"in {crashitem}"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._said and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._said:
            terminalreporter.section("processes that died", red=True)
            for name, where in self._said.items():
                terminalreporter.line(f"{name} died {where}")
